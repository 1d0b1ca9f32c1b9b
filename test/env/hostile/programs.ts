/** @module Programs and arguments at random, by a seed: pieces of the language put together as a policy under pressure might, hostile ones among them. */
import { generator, type Random } from '../../../src/records/random.ts';
import type { Armed } from './environment.ts';

const VALUES = [
  ...[
    '0',
    '-0',
    '1',
    '-1',
    '2 ** 31',
    '2 ** 32',
    '2 ** 53',
    'NaN',
    'Infinity',
    '1e21',
    '0n',
    '7n',
    '2n ** 64n',
    '""',
    '"x"',
    '"\\ud800"',
    '"__proto__"',
  ],
  ...[
    'null',
    'undefined',
    'true',
    '[]',
    '[1, 2, 3]',
    '[[]]',
    '{}',
    '{ a: 1 }',
    'input',
    'Symbol.iterator',
    '/x/g',
    'new Date(0)',
    'new Map()',
    'new Set([1])',
  ],
  ...[
    'new Uint8Array(8)',
    'new ArrayBuffer(8)',
    'globalThis',
    'Math',
    'JSON',
    'Reflect',
    'Object.prototype',
    'Array.prototype',
    'Function.prototype',
    'new Error("e")',
  ],
  ...[
    '{ length: 1000 }',
    '{ length: -1 }',
    '{ toString() { throw 1; } }',
    '{ get x() { return this; } }',
    '{ toJSON() { return input; } }',
    '{ valueOf: () => 3 }',
    '{ then() {} }',
  ],
  ...[
    'new Proxy({}, {})',
    'new Proxy([], { get: () => 1 })',
    'new Proxy({}, { ownKeys: () => ["a", "a"] })',
    '(function* () { yield 1; })()',
    '"x".repeat(1000)',
    'new Array(1000)',
  ],
];
const HOLDERS = [
  'Object',
  'Array',
  'String',
  'Number',
  'BigInt',
  'Math',
  'JSON',
  'Reflect',
  'Symbol',
  'Date',
  'RegExp',
  'Map',
  'Set',
  'ArrayBuffer',
  'Uint8Array',
  'Error',
  'Function',
  'Proxy',
  'Iterator',
];
/** Where a program may reach for what never comes back; rare, for each costs a host. */
const DIRE = [
  '{ length: 2 ** 53 - 1 }',
  'new Array(2 ** 32 - 1)',
  '"x".repeat(2 ** 28)',
  '2n ** (2n ** 20n)',
  'new Array(1e8)',
];

export interface FuzzOptions {
  /** Share of values that are dire. */
  readonly dire: number;
}

/** The program number `index` of a seed, with its input. */
export function armedProgram(seed: string, index: number, { dire }: FuzzOptions): Armed {
  const random = generator(`${seed}/${index}`);
  const pick = <T>(from: readonly T[]) => from[Math.floor(random() * from.length)] as T;
  const value = (depth: number): string => {
    const kind = random();
    if (random() < dire) return pick(DIRE);
    if (depth <= 0 || kind < 0.4) return pick(VALUES);
    const one = () => value(depth - 1);
    const made = [
      () => `[${one()}, ${one()}]`,
      () => `({ ${pick(['a', '__proto__', 'length', 'toJSON', 'constructor'])}: ${one()} })`,
      () => `attempt(() => (${one()}) ${pick(['+', '-', '*', '%', '<<', '===', 'in', 'instanceof', '??'])} (${one()}))`,
      () => `attempt(() => invoke(${pick(HOLDERS)}, ${Math.floor(random() * 60)}, ${one()}, ${one()}))`,
      () => `attempt(() => invoke(${pick(HOLDERS)}.prototype ?? {}, ${Math.floor(random() * 60)}, ${one()}, ${one()}))`,
      () => `attempt(() => new (${pick(HOLDERS)})(${one()}, ${one()}))`,
      () => `attempt(() => (${one()})[${pick(['0', '"length"', '"constructor"', '"__proto__"', 'Symbol.iterator'])}])`,
      () =>
        `attempt(() => { (${one()})[${pick(['0', '"length"', '"x"', '"__proto__"', '"toJSON"'])}] = ${one()}; return 1; })`,
      () => `attempt(() => Object.${pick(['freeze', 'seal', 'preventExtensions'])}(${one()}))`,
      () =>
        `attempt(() => Object.defineProperty(${one()}, ${pick(['0', '"length"', '"a"', '"toJSON"'])}, { get() { ${pick(['return 1', 'throw 2', 'return this', 'for (let i = 0; i < 1e5; i++)'])}; } }))`,
      () => `attempt(() => [...(${one()})])`,
      () => `(function f(n) { return n > 0 ? [f(n - 1)] : ${one()}; })(${pick(['3', '50', '1e9'])})`,
    ];
    return pick(made)();
  };
  const statements = Array.from({ length: 1 + Math.floor(random() * 3) }, () => statement(random, pick, value));
  const code = `function (input) {
  const attempt = (f) => { try { return f(); } catch (e) { return e; } };
  const invoke = (o, n, a, b) => { const k = Reflect.ownKeys(Object(o)); const f = o[k[n % k.length]]; return typeof f === "function" ? f.call(a, b, a) : f; };
  ${statements.join('\n  ')}
  return ${value(3)};
}`;
  return { code: random() < 0.1 ? mangled(code, random) : code, input: input(random, pick) };
}

function statement(random: Random, pick: <T>(from: readonly T[]) => T, value: (depth: number) => string): string {
  return pick([
    () => `attempt(() => ${value(3)});`,
    () => `globalThis[${pick(['"a"', '"Array"', '"JSON"', '"Object"', '"isogymRunCode"'])}] = ${value(1)};`,
    () =>
      `attempt(() => { ${pick(['Object', 'Array', 'String', 'Function'])}.prototype[${pick(['0', '"toJSON"', '"then"', '"message"', '"x"'])}] = ${value(1)}; });`,
    () =>
      `for (let i = 0; i < ${pick(['3', '1000', 'Infinity'])}; i++) { ${random() < 0.9 ? 'if (i > 100) break;' : ''} attempt(() => ${value(1)}); }`,
    () => `if (${value(1)}) throw ${value(2)};`,
  ])();
}

/** A character less, more or other: mostly a syntax error, and sometimes not. */
function mangled(code: string, random: Random): string {
  const at = Math.floor(random() * code.length);
  return code.slice(0, at) + (random() < 0.5 ? '' : ')]}`"\\\u2028'[Math.floor(random() * 7)]) + code.slice(at + 1);
}

function input(random: Random, pick: <T>(from: readonly T[]) => T): string {
  const json = (depth: number): string =>
    depth === 0 || random() < 0.4
      ? pick(['0', '-0', '1e400', 'null', 'true', '""', '"\\ud800"', '"__proto__"', '[]', '{}'])
      : random() < 0.5
        ? `[${json(depth - 1)},${json(depth - 1)}]`
        : `{"${pick(['a', '__proto__', 'length', 'toJSON'])}":${json(depth - 1)}}`;
  return random() < 0.1 ? pick(['', '{', 'undefined', '[1,]', '\u0000', '"']) : json(3);
}
