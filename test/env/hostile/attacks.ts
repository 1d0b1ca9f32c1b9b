/** @module Code that a policy could write to get out, to stay, or to take others down; and what becomes of it. */

export interface Attack {
  readonly name: string;
  /** The function that it runs; or all arguments of its call. */
  readonly code?: string;
  readonly call?: { readonly tool: string; readonly arguments: string };
  readonly input?: string;
  /** What the policy sees, or `sandbox-failure: <kind>` where it took its host down. */
  readonly becomes: RegExp;
}

const TIMEOUT = /^timeout: The code ran longer than 300 ms\.$/;
/** Which of the two depends on how far it comes in its time. */
const TIME_OR_MEMORY = /^(timeout|out-of-memory): /;
const DEEP = /^too-deep: The calls nest too deep\.$/;
const REFUSED = /^refused: /;
/** Nothing inside ends it, or the engine ends the process: the host dies, of one or the other. */
const FATAL = /^sandbox-failure: (hang|out-of-memory)$/;
const FATAL_OR_BOUND = /^(sandbox-failure: (hang|out-of-memory)$|timeout: |out-of-memory: |error: )/;
const HANG = /^sandbox-failure: hang$/;

const fn = (body: string) => `function (input) { ${body} }`;
const attack = (name: string, body: string, becomes: RegExp): Attack => ({ name, code: fn(body), becomes });

/** Ended by the isolate: an observation, and the host lives. */
const LOOPS: readonly Attack[] = [
  attack('endless loop', 'for (;;);', TIMEOUT),
  attack('endless loop that catches everything', 'for (;;) try { for (;;); } catch {} finally { for (;;); }', TIMEOUT),
  attack('endless generator', 'function* g() { for (;;) yield 1; } for (const _ of g());', TIMEOUT),
  attack('catastrophic regular expression', "return /^(a+)+$/.test('a'.repeat(40) + 'b');", TIMEOUT),
  attack('catastrophic back-references', "return /(a*)*\\1b/.test('a'.repeat(30));", TIMEOUT),
  attack('regular expression over a long text', "return /(x+x+)+y/.test('x'.repeat(1e5));", TIMEOUT),
  attack('comparator that loops', 'return [2, 1].sort(() => { for (;;); });', TIMEOUT),
  attack('getter that loops on copy-out', 'return { get x() { for (;;); } };', TIMEOUT),
  attack('toJSON that loops', 'return { toJSON() { for (;;); } };', TIMEOUT),
  attack('proxy that loops on copy-out', 'return new Proxy({}, { ownKeys() { for (;;); } });', TIMEOUT),
  attack(
    'endless proxy for an array',
    'return new Proxy([], { get: (_, k) => (k === "length" ? 2 ** 32 : 0) });',
    /^(error|timeout|out-of-memory): /,
  ),
  attack('thrown value whose message loops', 'throw { get message() { for (;;); } };', TIMEOUT),
  attack('thrown proxy that loops', 'throw new Proxy({}, { get() { for (;;); } });', TIMEOUT),
  attack('thrown proxy whose prototype loops', 'throw new Proxy({}, { getPrototypeOf() { for (;;); } });', TIMEOUT),
  attack(
    'error whose transient mark loops',
    'const e = new Error("x"); Object.defineProperty(e, "transient", { get() { for (;;); } }); throw e;',
    TIMEOUT,
  ),
  { name: 'code that loops before it is a function', code: '(() => { for (;;); })()', becomes: TIMEOUT },
  attack('valueOf that loops', 'return 1 + { valueOf() { for (;;); } };', TIMEOUT),
];

/** Over at once, with a result or an error. */
export const HARMLESS: readonly Attack[] = [
  attack(
    'error whose stack loops, which nobody reads',
    'const e = new Error("x"); Object.defineProperty(e, "stack", { get() { for (;;); } }); throw e;',
    /^error: x$/,
  ),
  attack(
    'error whose name loops, which nobody reads',
    'const e = new Error("x"); Object.defineProperty(e, "name", { get() { for (;;); } }); throw e;',
    /^error: x$/,
  ),
  attack(
    'looping prepareStackTrace',
    'Error.prepareStackTrace = () => { for (;;); }; throw new Error("x");',
    /^error: Cannot assign/,
  ),
  attack('cause without end', 'const e = new Error("x"); e.cause = e; throw e;', /^error: x$/),
  attack('circular result', 'const a = {}; a.a = a; return a;', /^error: Converting circular/),
  attack('message of 10 MB', 'throw new Error("m".repeat(1e7));', /^error: m{500}$/),
  attack('thrown undefined', 'throw undefined;', /^error: A value that cannot be read was thrown\.$/),
  attack('revoked proxy as the result', 'const p = Proxy.revocable({}, {}); p.revoke(); return p.proxy;', /^error: /),
  attack('BigInt as the result', 'return 1n;', /^error: Do not know how to serialize a BigInt/),
  attack(
    'function as the result',
    'return () => 1;',
    /^error: The function returned function, which JSON cannot express\.$/,
  ),
  attack('symbol as the result', 'return Symbol("s");', /^error: The function returned symbol/),
  attack(
    '__proto__ as a key of the result',
    'return JSON.parse(\'{"__proto__": {"x": 1}}\');',
    /^\{"__proto__":\{"x":1\}\}$/,
  ),
  attack(
    'polluted Object.prototype',
    'Object.prototype.failure = "none"; Object.prototype.ok = true; return {};',
    /^\{\}$/,
  ),
  attack('patched JSON and Reflect', 'JSON.stringify = Reflect.apply = () => "k1"; return 2;', /^2$/),
  attack(
    'patched Array.prototype',
    'Array.prototype.toJSON = function () { return "mine"; }; Array.prototype[0] = "x"; return [1];',
    /^"mine"$/,
  ),
  attack(
    'setter on Array.prototype',
    'Object.defineProperty(Array.prototype, 0, { set() { for (;;); }, configurable: true }); return [1];',
    /^\[1\]$/,
  ),
  attack(
    'frozen intrinsics',
    'for (const o of [Object, Array, Function, String, JSON, Reflect, Math]) { Object.freeze(o); if (o.prototype) Object.freeze(o.prototype); } Object.freeze(globalThis); return 1;',
    /^(1|error: .*)$/,
  ),
  attack(
    'deleted intrinsics',
    'const { deleteProperty, ownKeys } = Reflect; const all = globalThis; for (const k of ownKeys(all)) deleteProperty(all, k); return 1;',
    /^1$/,
  ),
  attack(
    'the host by the constructor of a constructor',
    'return this?.constructor?.constructor("return process")() ?? input.constructor.constructor("return process")();',
    /^error: (Code from strings|Cannot)/,
  ),
  attack(
    'the host by its names',
    'return [typeof process, typeof require, typeof module, typeof fetch, typeof setTimeout, typeof performance, typeof console, typeof globalThis.isogymRunCode, typeof isogymRunCode, typeof run];',
    /^\["undefined"(,"undefined"){9}\]$/,
  ),
  attack(
    'memory outside the heap by its names',
    'return [typeof WebAssembly, typeof SharedArrayBuffer, typeof Atomics, typeof WeakRef, typeof FinalizationRegistry, typeof Promise];',
    /^\["undefined"(,"undefined"){5}\]$/,
  ),
  attack(
    'resizable buffer',
    'const b = new ArrayBuffer(8, { maxByteLength: 2 ** 30 }); return [b.resizable, typeof b.resize];',
    /^\[false,"undefined"\]$/,
  ),
  attack('the caller by Function.caller', 'return String((function f() { return f.caller; })());', /^error: /),
  attack(
    'the world and what is held, by their names',
    'return [typeof held, typeof tools, typeof world, typeof runCode, Object.keys(globalThis)];',
    /^\["undefined","undefined","undefined","undefined",\[\]\]$/,
  ),
  attack(
    'a note for the next run',
    'globalThis.note = (globalThis.note ?? 0) + 1; Object.prototype.note = 1; return globalThis.note;',
    /^1$/,
  ),
  attack(
    'the clock stands still',
    'const t = Date.now(); for (let i = 0; i < 1e5; i++); return Date.now() - t;',
    /^0$/,
  ),
  attack(
    'dates, chance and locale are the same for all',
    'return [new Date().getFullYear(), Math.random(), new Date(0).getTimezoneOffset(), (1e6).toLocaleString()];',
    /^\[2025,0\.\d+,0,"1000000"\]$/,
  ),
];

const LEFTOVERS: readonly Attack[] = [
  { name: 'async function', code: 'async () => { for (;;); }', becomes: REFUSED },
  { name: 'endless microtasks', code: '() => { const f = async () => { await 0; f(); }; f(); }', becomes: REFUSED },
  {
    name: 'promise that never settles',
    code: fn('return (async () => { await new (class { then() {} }); })();'),
    becomes: REFUSED,
  },
  {
    name: 'rejection whose stack loops',
    code: fn('(async () => { throw { get stack() { for (;;); } }; })(); return 1;'),
    becomes: REFUSED,
  },
  { name: 'async in an escape', code: fn('return (\\u0061sync () => 1)();'), becomes: REFUSED },
  { name: 'import of a module', code: fn('return import("node:fs");'), becomes: REFUSED },
  attack('async by code from strings', 'return (0, eval)("a" + "sync () => 1")();', /^error: .*eval/),
  attack(
    'async by the constructor of a generator',
    'return (function* () {}).constructor("yield 1");',
    /^error: Code from strings/,
  ),
  { name: 'end of the wrapper', code: '1); for (;;); (2', becomes: REFUSED },
  { name: 'end of the function around it', code: '}); globalThis.x = 1; (function () {', becomes: REFUSED },
  { name: 'comment without end', code: '() => 1 /*', becomes: REFUSED },
  { name: 'comment to the end of the line', code: '() => 1 //', becomes: /^1$/ },
  { name: 'HTML comment', code: '() => 1\n--> x', becomes: /^1$/ },
  { name: 'empty code', code: '', becomes: REFUSED },
  { name: 'NUL and U+2028', code: '() => "\u0000\u2028"', becomes: /^"\\u0000\u2028"$/ },
  { name: 'lone surrogate', code: '() => "\ud800"', becomes: /^"\\ud800"$/ },
];

const DEPTH: readonly Attack[] = [
  attack('endless recursion', 'const f = () => f() + 1; return f();', DEEP),
  attack('recursion by toString', 'const o = { toString() { return String(o); } }; return String(o);', DEEP),
  attack('recursion by a proxy of itself', 'const p = new Proxy({}, { get: (_, k) => p[k] }); return p.x;', DEEP),
  attack('result nested too deep', 'let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a;', DEEP),
  attack(
    'recursion that catches itself',
    'const f = () => { try { f(); } catch { f(); } }; f();',
    /^(timeout|too-deep): /,
  ),
  {
    name: 'source nested too deep',
    code: `() => ${'['.repeat(900)}${']'.repeat(900)}`,
    becomes: /^(\[|too-deep|refused|error)/,
  },
  {
    name: 'input nested too deep',
    code: '(x) => x',
    input: '['.repeat(900) + ']'.repeat(900),
    becomes: /^\[{900}\]{900}$/,
  },
];

const OUTPUT: readonly Attack[] = [
  attack(
    'output of 100 MB',
    'return "x".repeat(1e8);',
    /^too-much-output: The result has 100000000 characters, at most 2000 are allowed\.$/,
  ),
  attack('output of half a gigabyte that is not made yet', 'return "x".repeat(2 ** 29 - 100);', /^too-much-output: /),
  attack(
    'output one character too long',
    'return "x".repeat(1999);',
    /^too-much-output: The result has 2001 characters/,
  ),
  attack('output of the greatest length', 'return "x".repeat(1998);', /^"x{1998}"$/),
  attack('long output by toJSON', 'return { toJSON: () => "x".repeat(1e6) };', /^too-much-output: /),
  attack('half a gigabyte within a list', 'return ["x".repeat(2 ** 29 - 100)];', FATAL_OR_BOUND),
  attack('many keys', 'const o = {}; for (let i = 0; i < 2e3; i++) o[i] = i; return o;', /^too-much-output: /),
];

/** Ended by the isolate or by the host's death. */
const MEMORY_BOMBS: readonly Attack[] = [
  attack('array bomb', 'const a = []; for (;;) a.push(new Array(1e4).fill(1));', TIME_OR_MEMORY),
  attack('string bomb', 'let s = "x"; for (;;) s += s;', /^(error|timeout|out-of-memory): /),
  attack('object bomb', 'const a = []; for (;;) a.push({ a: [], b: {} });', TIME_OR_MEMORY),
  attack(
    'typed arrays outside the heap',
    'const a = []; for (;;) a.push(new Uint8Array(1e6).fill(1));',
    TIME_OR_MEMORY,
  ),
  attack('one typed array of 4 GB', 'return new Uint8Array(4e9).length;', /^(error|out-of-memory): /),
  attack('closures without end', 'let f = () => 0; for (;;) { const g = f; f = () => g; }', TIME_OR_MEMORY),
  attack('spread of a long text', 'return [..."x".repeat(1e8)].length;', FATAL_OR_BOUND),
  attack('matches without end', 'return "a".repeat(2 ** 25).match(/a/g).length;', FATAL_OR_BOUND),
  attack('growing Map', 'const m = new Map(); for (let i = 0; ; i++) m.set(i, i);', FATAL_OR_BOUND),
  attack('growing Set of texts', 'const s = new Set(); for (let i = 0; ; i++) s.add("k" + i);', FATAL_OR_BOUND),
  attack('growing keys of an object', 'const o = {}; for (let i = 0; ; i++) o["k" + i] = 1;', FATAL_OR_BOUND),
  attack(
    'isolate disposed in mid-call',
    'const a = []; try { for (;;) a.push(new Array(1e5).fill(0.5)); } catch { for (;;); }',
    TIME_OR_MEMORY,
  ),
];

/** What isolated-vm does not hold: nothing inside ends it, or the process ends. */
export const NATIVE: readonly Attack[] = [
  {
    name: 'an argument that its own schema chokes on',
    call: { tool: 'match', arguments: JSON.stringify({ text: `${'a'.repeat(40)}b` }) },
    becomes: HANG,
  },
  attack('lastIndexOf over 2^32 holes', 'const a = []; a.length = 2 ** 32 - 1; return a.lastIndexOf(5);', HANG),
  attack('indexOf over 2^53', 'return Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 5);', HANG),
  attack('includes over 2^53', 'return Array.prototype.includes.call({ length: 2 ** 53 - 1 }, 5);', FATAL_OR_BOUND),
  attack('fill over 2^53', 'return Array.prototype.fill.call({ length: 2 ** 53 - 1 }, 5);', FATAL_OR_BOUND),
  attack('reverse of 2^32 holes', 'return new Array(2 ** 32 - 1).reverse().length;', FATAL_OR_BOUND),
  attack('String.raw over 2^53', 'return String.raw({ raw: { length: 2 ** 53 - 1 } }).length;', FATAL_OR_BOUND),
  attack('BigInt power', 'return (2n ** (2n ** 28n)).toString().length;', FATAL_OR_BOUND),
  attack('BigInt power of a power', 'return String(10n ** (10n ** 9n)).length;', FATAL_OR_BOUND),
  attack('BigInt from a long text', 'return String(BigInt("9".repeat(2 ** 25)) % 7n);', FATAL_OR_BOUND),
  attack('huge replace', 'return "a".repeat(2 ** 28).replace(/a/g, "bb").length;', FATAL),
  attack('an array of 10^9, filled', 'return new Array(1e9).fill(0).length;', FATAL),
  attack('a list of 10^9', 'return Array.from({ length: 1e9 }).length;', FATAL_OR_BOUND),
  attack('split of the longest text', 'return "x".padEnd(2 ** 29 - 30).split("").length;', FATAL),
  attack('sort of 10^8', 'return new Array(1e8).fill(1).sort().length;', FATAL),
  attack('toSorted of 2^28 holes', 'return new Array(2 ** 28).toSorted().length;', FATAL_OR_BOUND),
  attack(
    'join of 2^27 elements',
    'return new Array(2 ** 27).join("ab").length;',
    /^(\d+$|sandbox-failure: (hang|out-of-memory)$|(timeout|out-of-memory|error): )/,
  ),
];

/** By the arguments of the call, outside every isolate. */
const ARGUMENTS: readonly Attack[] = [
  {
    name: '__proto__ among the arguments',
    call: { tool: 'run', arguments: '{"code":"x=>x","input":"1","__proto__":{"x":1}}' },
    becomes: /^error: invalid arguments/,
  },
  {
    name: 'an argument that nobody declared',
    call: { tool: 'run', arguments: '{"code":"x=>x","input":"1","timeoutMs":100000}' },
    becomes: /^error: invalid arguments/,
  },
  {
    name: 'a tool that nobody declared',
    call: { tool: 'constructor', arguments: '{}' },
    becomes: /^error: unknown tool/,
  },
  {
    name: 'code that is an object',
    call: { tool: 'run', arguments: '{"code":{"toString":"x"},"input":"1"}' },
    becomes: /^error: invalid arguments/,
  },
  {
    name: 'code of 200 000 characters',
    code: `() => "${'x'.repeat(200_000)}"`,
    becomes: /^(error: invalid arguments|max-tokens)/,
  },
  { name: 'input that is no JSON', code: '(x) => x', input: '{"a":', becomes: /^error: / },
  {
    name: 'input with __proto__',
    code: '(x) => [Object.keys(x), x.polluted === undefined]',
    input: '{"__proto__":{"polluted":1}}',
    becomes: /^\[\["__proto__"\],true\]$/,
  },
];

/** All others: each is made in a batch of its own, among siblings. */
export const ATTACKS: readonly Attack[] = [
  ...LOOPS,
  ...HARMLESS,
  ...LEFTOVERS,
  ...DEPTH,
  ...OUTPUT,
  ...MEMORY_BOMBS,
  ...ARGUMENTS,
];
