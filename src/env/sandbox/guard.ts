/**
 * @module The guard: what runs in every context before any foreign code. It is JavaScript text, not a module of this program.
 *
 * It takes away what reaches outside the heap limit or the timeout, or differs between two runs; makes `Math.random` and
 * `Date` functions of the episode's seed and of the number of operations so far; and leaves behind one function, the only
 * door: `run(operation, a, b) → string`. Everything that foreign code can throw or return is read and turned into a string
 * behind that door, inside the host's timeout. Strings cross the line, nothing else.
 *
 * Promises go too. isolated-vm reads a rejection that nobody handled outside the timeout (a getter that loops there hangs the
 * process), and a microtask left by a call that ran late runs in the next session's call. `bundle.ts` turns `async` into calls
 * of `Promise`, and code from strings, which could write `async` again, is refused: so nothing runs once the door has answered.
 * What a policy wrote is compiled by the guard alone, in a realm of its own, where those words are refused.
 *
 * The answer's first letter is its kind: `k` ok, `e` error, `t` an error marked transient, `d` the call stack was too deep,
 * `o` too much output, `m` no memory for a buffer, `r` code that was refused or is no function.
 */
import { GONE } from './globals.ts';
import { SEEDED } from './seeded.ts';

/** Longest string that may leave the isolate, in UTF-16 code units. A tool's own `maxOutput` is applied outside, on what is left. */
export const MAX_TEXT = 1_048_576;
/** Longest error message that may leave the isolate, in UTF-16 code units. */
export const MAX_MESSAGE = 500;

/** The host's callback `(source, inputs JSON) → outcomes JSON`, where the program may run code that a policy wrote: the guard takes it away. */
export const RUN_CODE = 'isogymRunCode';

/**
 * The script of one context: the guard and the program behind it. Its completion value is the door, which the host takes as a
 * reference and releases: a function that isolated-vm turned into one of the host's would keep the context alive.
 * @param program an expression whose value makes the module's default export, what `bundle` gives; none for code of a policy alone.
 * It stands outside the guard, sees nothing of it, and is called behind the door.
 *
 * V8 compiles `(function` with the script and other functions when they are first called: in parentheses stand those that every
 * context needs, so that they come with the code that isolates of one pool share, see `RealmPool`.
 */
export function guarded(program = ''): string {
  return `${GUARD}(${program})`;
}

const GUARD = String.raw`'use strict';
(function (factory) {
  const global = globalThis;
  const { apply, construct, defineProperty, deleteProperty, getOwnPropertyDescriptor, getPrototypeOf } = Reflect;
  const hostRunCode = global.${RUN_CODE};
  deleteProperty(global, '${RUN_CODE}');
  const { parse, stringify } = JSON;
  const { freeze, hasOwn } = Object;
  const { isArray } = Array;
  const { prototype: stringPrototype } = String;
  const { slice } = stringPrototype;
  // Not test, which asks for the exec that foreign code may have put in its place.
  const { exec } = RegExp.prototype;
  const objectKeys = Object.keys;
  const lock = (function (target, key, value) {
    return defineProperty(target, key, { value, writable: false, enumerable: false, configurable: false });
  });
  const head = (text, length) => (text.length > length ? apply(slice, text, [0, length]) : text);

${GONE.map((name) => `  delete global.${name};`).join('\n')}
  delete Array.fromAsync;
  const bufferPrototype = ArrayBuffer.prototype;
  bufferPrototype.resize = undefined;
  bufferPrototype.transfer = undefined;
  bufferPrototype.transferToFixedLength = undefined;
  lock(Error, 'prepareStackTrace', undefined);
  lock(Error, 'stackTraceLimit', 0);

  // In place of a native constructor, which nothing leads to any more. Assigned where that is all there is to it: a lock costs
  // microseconds, and what foreign code writes over one of its own it has for itself.
  const replace = (function (Native, Replacement) {
    Replacement.prototype = Native.prototype;
    Native.prototype.constructor = Replacement;
    lock(global, Native.name, Replacement);
    freeze(Replacement);
  });
  // A resizable buffer lives outside the heap limit from its birth: the second argument is dropped.
  const NativeBuffer = ArrayBuffer;
  const Buffer = function ArrayBuffer(length) {
    if (new.target === undefined) throw new TypeError("Constructor ArrayBuffer requires 'new'");
    return construct(NativeBuffer, [length], new.target);
  };
  lock(Buffer, 'isView', NativeBuffer.isView);
  defineProperty(Buffer, Symbol.species, getOwnPropertyDescriptor(NativeBuffer, Symbol.species));
  replace(NativeBuffer, Buffer);

  const NativeFunction = Function;
  const refuse = () => {
    throw new EvalError('Code from strings is not allowed inside the isolate.');
  };
  replace(NativeFunction, function Function(body) {
    refuse();
  });
  // Those of generators and of asynchronous functions: they inherit the one above.
  delete getPrototypeOf(function* () {}).constructor;
  delete getPrototypeOf(async () => {}).constructor;
  delete getPrototypeOf(async function* () {}).constructor;

  // Locale: without Intl, these would still follow the host's default one.
  const { toLocaleString } = Object.prototype; // which is toString
  Number.prototype.toLocaleString = toLocaleString;
  BigInt.prototype.toLocaleString = toLocaleString;
  Array.prototype.toLocaleString = toLocaleString;
  getPrototypeOf(Int8Array).prototype.toLocaleString = toLocaleString;
  stringPrototype.toLocaleUpperCase = stringPrototype.toUpperCase;
  stringPrototype.toLocaleLowerCase = stringPrototype.toLowerCase;
  const NativeString = String;
  stringPrototype.localeCompare = function localeCompare(that) {
    const a = NativeString(this);
    const b = NativeString(that);
    return a < b ? -1 : a > b ? 1 : 0;
  };

${SEEDED}
  const rangeErrorPrototype = RangeError.prototype;
  const tooDeep = (error) =>
    error !== null && typeof error === 'object' && getPrototypeOf(error) === rangeErrorPrototype && error.message === 'Maximum call stack size exceeded';
  const describe = (error) => {
    try {
      if (tooDeep(error)) return 'dThe calls nest too deep.';
      const message = typeof error === 'string' ? error : error.message;
      if (message === 'Array buffer allocation failed') return 'm' + message;
      if (typeof message !== 'string' || message === '') return 'eA value without a message was thrown.';
      return (error.transient === true ? 't' : 'e') + head(message, ${MAX_MESSAGE});
    } catch {
      return 'eA value that cannot be read was thrown.';
    }
  };
  const kindOf = (value) => (value === null ? 'null' : isArray(value) ? 'an array' : typeof value);

  let main;
  let loaded = false;
  const load = (function () {
    if (loaded) return;
    begin('');
    main = factory();
    if (typeof main !== 'function') throw new TypeError('Expected a function as the default export, found ' + kindOf(main) + '.');
    loaded = true;
  });

  let tools;
  let opened;
  const open = (function (publicJson, seed) {
    load();
    begin(seed);
    const world = main({ public: parse(publicJson), random, runCode });
    tools = world === null || typeof world !== 'object' ? undefined : world.tools;
    if (tools === null || typeof tools !== 'object') {
      throw new TypeError('Expected an object { tools } from the default export (and no promise), found ' + kindOf(world) + '.');
    }
    opened = world;
    return 'k';
  });

  // What a world held is not in the way of its neighbours until the next one is opened here.
  const close = () => {
    opened = undefined;
    tools = undefined;
    return 'k';
  };

  // Empty where the world declares none: then its state is known by its history alone.
  const snapshot = () => {
    const take = opened.snapshot;
    if (take === undefined) return 'k';
    if (typeof take !== 'function' || typeof opened.restore !== 'function') throw new TypeError('Expected both snapshot and restore of the world to be functions, or neither to be there.');
    const state = apply(take, opened, []);
    settle();
    const json = stringify({ state, random: [s0, s1, s2, carry], now });
    if (state === undefined) throw new TypeError('Expected a JSON value from snapshot(), found ' + kindOf(state) + '.');
    if (json.length > ${MAX_TEXT}) return 'oThe snapshot has ' + json.length + ' characters; at most ${MAX_TEXT} may leave the isolate.';
    return 'k' + json;
  };
  const restore = (json) => {
    const { state, random, now: then } = parse(json);
    apply(opened.restore, opened, [state]);
    unused = undefined;
    s0 = random[0];
    s1 = random[1];
    s2 = random[2];
    carry = random[3];
    now = then;
    return 'k';
  };

  const call = (function (name, argumentsJson) {
    now += 1000;
    const tool = hasOwn(tools, name) ? tools[name] : undefined;
    if (typeof tool !== 'function') return 'eThe world has no tool "' + head(name, 100) + '".';
    const text = apply(tool, tools, [parse(argumentsJson)]);
    if (typeof text !== 'string') return 'eThe tool must return a string, it returned ' + kindOf(text) + '.';
    if (text.length > ${MAX_TEXT}) return 'oThe tool returned ' + text.length + ' characters; at most ${MAX_TEXT} may leave the isolate.';
    return 'k' + text;
  });

  const runCode = (source, inputs) => {
    if (hostRunCode === undefined) throw new TypeError('This program runs no code of a policy: its declaration has no "code".');
    const texts = [];
    for (let i = 0; i < inputs.length; i++) defineProperty(texts, i, { value: NativeString(inputs[i]), enumerable: true });
    return parse(hostRunCode(NativeString(source), stringify(texts)));
  };

  // A promise needs one of these words, which no escape can spell: see the module's comment.
  const unfinished = /\b(?:async|await|import)\b/;
  const code = (source, inputsJson, limit) => {
    if (apply(exec, unfinished, [source]) !== null) return 'rThe words async, await and import are not allowed in the code, not even in texts: nothing may go on after the call.';
    let main;
    try {
      main = construct(NativeFunction, ['"use strict"; return (\n' + source + '\n);'])();
    } catch (error) {
      const said = describe(error);
      return said[0] === 'd' ? said : 'r' + apply(slice, said, [1]);
    }
    if (typeof main !== 'function') return 'rExpected the code to be one function, found ' + kindOf(main) + '.';
    const inputs = parse(inputsJson);
    let out = '';
    for (let i = 0; i < inputs.length; i++) out += (i === 0 ? '' : ',') + stringify(outcome(main, inputs[i], limit));
    return 'k[' + out + ']';
  };
  const outcome = (main, inputJson, limit) => {
    try {
      const value = apply(main, undefined, [parse(inputJson)]);
      if (typeof value === 'string' && value.length > limit) return tooMuch(value.length, limit);
      const json = stringify(value);
      if (json === undefined) return 'eThe function returned ' + kindOf(value) + ', which JSON cannot express.';
      return json.length > limit ? tooMuch(json.length, limit) : 'k' + json;
    } catch (error) {
      return describe(error);
    }
  };
  const tooMuch = (length, limit) => 'oThe result has ' + length + ' characters, at most ' + limit + ' are allowed.';

  // Not recursive: a deep value must not overflow the stack.
  const freezeDeep = (root) => {
    const open = [root];
    while (open.length > 0) {
      const value = open.pop();
      if (value === null || typeof value !== 'object') continue;
      freeze(value);
      for (const key of objectKeys(value)) open.push(value[key]);
    }
    return root;
  };
  const verdictOf = (input) => {
    begin(input.taskId);
    const verdict = main(freezeDeep(input), { runCode });
    if (verdict === null || typeof verdict !== 'object') throw new TypeError('Expected { score, reasons } (and no promise), found ' + kindOf(verdict) + '.');
    const { score, reasons = [] } = verdict;
    if (!isArray(reasons)) throw new TypeError('Expected an array of strings as reasons, found ' + kindOf(reasons) + '.');
    const texts = reasons.slice(0, 20).map((reason) => head(NativeString(reason), ${MAX_MESSAGE}));
    return { score: typeof score === 'number' ? '' + score : kindOf(score), number: typeof score === 'number', reasons: texts };
  };
  // Each input as if it were alone: what is thrown for one is its own answer, a text in place of a verdict.
  const score = (inputsJson) => {
    load();
    const inputs = parse(inputsJson);
    let out = '';
    for (let i = 0; i < inputs.length; i++) {
      out += i === 0 ? '' : ',';
      try {
        out += stringify(verdictOf(inputs[i]));
      } catch (error) {
        out += stringify(describe(error));
      }
    }
    return 'k[' + out + ']';
  };

  // A long text comes in pieces: see pieces.ts.
  const run = (function (operation, a, b, limit, ...more) {
    for (let i = 0; i < more.length; i++) a += more[i];
    try {
      switch (operation) {
        case 'call':
          return call(a, b);
        case 'open':
          return open(a, b);
        case 'score':
          return score(a);
        case 'close':
          return close();
        case 'snapshot':
          return snapshot();
        case 'restore':
          return restore(a);
        default:
          begin('');
          return code(a, b, limit);
      }
    } catch (error) {
      return describe(error);
    }
  });
  return run;
})`;
