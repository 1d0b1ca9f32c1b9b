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
 * `o` too much output, `r` code that was refused or is no function.
 */

/** Longest string that may leave the isolate, in UTF-16 code units. A tool's own `maxOutput` is applied outside, on what is left. */
export const MAX_TEXT = 1_048_576;
/** Longest error message that may leave the isolate, in UTF-16 code units. */
export const MAX_MESSAGE = 500;
/** The clock's first reading [ms]: 2025-01-01T00:00:00Z. It stands still within an operation and moves on by a second with each. */
export const CLOCK_START_MS = 1_735_689_600_000;

/** The name under which the guard leaves its door until the host has taken it and the program has registered itself. */
export const RUN = 'isogymRun';
/** The host's callback `(source, inputs JSON) → outcomes JSON`, where the program may run code that a policy wrote: the guard takes it away. */
export const RUN_CODE = 'isogymRunCode';
/** The function that a bundled program hands its factory to, once; see `bundle.ts`. */
export const REGISTER = 'isogymRegister';

/** For a realm that runs what a policy wrote: no program at all. */
export const NO_PROGRAM = `${REGISTER}();0`;

export const GUARD = String.raw`'use strict';
(() => {
  const global = globalThis;
  const { apply, construct, defineProperty, deleteProperty, getPrototypeOf } = Reflect;
  const hostRunCode = global.${RUN_CODE};
  deleteProperty(global, '${RUN_CODE}');
  const { parse, stringify } = JSON;
  const { freeze, hasOwn } = Object;
  const { isArray } = Array;
  const { prototype: stringPrototype } = String;
  const { slice } = stringPrototype;
  const { test } = RegExp.prototype;
  const objectKeys = Object.keys;
  const lock = (target, key, value) => defineProperty(target, key, { value, writable: false, enumerable: false, configurable: false });
  const head = (text, length) => (text.length > length ? apply(slice, text, [0, length]) : text);

  // What escapes the heap limit or the timeout, or lets in the host's locale, memory pressure and clock.
  for (const name of [
    'WebAssembly', 'SharedArrayBuffer', 'Atomics', 'console', 'WeakRef', 'FinalizationRegistry', 'Intl', 'Temporal', 'Promise', 'eval',
  ]) {
    delete global[name];
  }
  delete Array.fromAsync;
  for (const name of ['resize', 'transfer', 'transferToFixedLength']) delete ArrayBuffer.prototype[name];
  lock(Error, 'prepareStackTrace', undefined);
  lock(Error, 'stackTraceLimit', 0);
  const replace = (Native, Replacement) => {
    for (const key of Reflect.ownKeys(Native)) {
      if (key !== 'prototype') defineProperty(Replacement, key, Reflect.getOwnPropertyDescriptor(Native, key));
    }
    defineProperty(Replacement, 'prototype', { value: Native.prototype, writable: false, enumerable: false, configurable: false });
    lock(Native.prototype, 'constructor', Replacement);
    lock(global, Native.name, Replacement);
  };
  // A resizable buffer lives outside the heap limit from its birth: the second argument is dropped.
  const NativeBuffer = ArrayBuffer;
  replace(NativeBuffer, function ArrayBuffer(length) {
    if (new.target === undefined) throw new TypeError("Constructor ArrayBuffer requires 'new'");
    return construct(NativeBuffer, [length], new.target);
  });

  const NativeFunction = Function;
  const refuse = () => {
    throw new EvalError('Code from strings is not allowed inside the isolate.');
  };
  replace(NativeFunction, function Function() {
    refuse();
  });
  for (const sample of [function* () {}, async () => {}, async function* () {}]) {
    lock(Reflect.getPrototypeOf(sample), 'constructor', refuse);
  }

  // Locale: without Intl, these would still follow the host's default one.
  for (const prototype of [Number, BigInt, Array, Reflect.getPrototypeOf(Int8Array)].map((type) => type.prototype)) {
    delete prototype.toLocaleString; // Object.prototype.toLocaleString stays, which is toString
  }
  lock(stringPrototype, 'toLocaleUpperCase', stringPrototype.toUpperCase);
  lock(stringPrototype, 'toLocaleLowerCase', stringPrototype.toLowerCase);
  const NativeString = String;
  lock(stringPrototype, 'localeCompare', function localeCompare(that) {
    const a = NativeString(this);
    const b = NativeString(that);
    return a < b ? -1 : a > b ? 1 : 0;
  });

  // Random numbers: Alea (Johannes Baagøe, 2010, MIT), as seedrandom implements it and src/records/random.ts uses it.
  let s0 = 0, s1 = 0, s2 = 0, carry = 1;
  const { charCodeAt } = stringPrototype;
  // The generator is made when it is first asked: most episodes never ask.
  let unused;
  const begin = (seed) => {
    unused = seed;
    now = ${CLOCK_START_MS};
  };
  const settle = () => {
    if (unused === undefined) return;
    const seed = unused;
    unused = undefined;
    let n = 0xefc8249d;
    const mash = (text) => {
      for (let i = 0; i < text.length; i++) {
        n += apply(charCodeAt, text, [i]);
        let h = 0.02519603282416938 * n;
        n = h >>> 0;
        h -= n;
        h *= n;
        n = h >>> 0;
        h -= n;
        n += h * 0x100000000;
      }
      return (n >>> 0) * 2.3283064365386963e-10;
    };
    s0 = mash(' ');
    s1 = mash(' ');
    s2 = mash(' ');
    s0 -= mash(seed);
    if (s0 < 0) s0 += 1;
    s1 -= mash(seed);
    if (s1 < 0) s1 += 1;
    s2 -= mash(seed);
    if (s2 < 0) s2 += 1;
    carry = 1;
  };
  const draw = () => {
    const t = 2091639 * s0 + carry * 2.3283064365386963e-10;
    s0 = s1;
    s1 = s2;
    carry = t | 0;
    s2 = t - carry;
    return s2;
  };
  const random = freeze(() => {
    settle();
    return draw() + ((draw() * 0x200000) | 0) * 1.1102230246251565e-16;
  });
  lock(Math, 'random', random);

  // The clock, and every method that would follow the host's time zone: UTC.
  let now = ${CLOCK_START_MS};
  const NativeDate = Date;
  const { parse: nativeParse, UTC } = NativeDate;
  const datePrototype = NativeDate.prototype;
  const zoned = /(?:[zZ]|GMT|UTC|[+-]\d\d:?\d\d)\s*(?:\([^()]*\))?\s*$/;
  const dateTime = /^\d{4}-\d\d-\d\dT/;
  const parseUtc = (text) => nativeParse(apply(test, zoned, [text]) ? text : apply(test, dateTime, [text]) ? text + 'Z' : text + ' UTC');
  replace(NativeDate, function Date(...parts) {
    if (new.target === undefined) return new NativeDate(now).toUTCString();
    if (parts.length === 0) return construct(NativeDate, [now], new.target);
    if (parts.length > 1) return construct(NativeDate, [apply(UTC, undefined, parts)], new.target);
    return construct(NativeDate, [typeof parts[0] === 'string' ? parseUtc(parts[0]) : parts[0]], new.target);
  });
  lock(Date, 'now', () => now);
  lock(Date, 'parse', (text) => parseUtc(NativeString(text)));
  for (const unit of ['Date', 'Day', 'FullYear', 'Hours', 'Milliseconds', 'Minutes', 'Month', 'Seconds']) {
    lock(datePrototype, 'get' + unit, datePrototype['getUTC' + unit]);
    if (unit !== 'Day') lock(datePrototype, 'set' + unit, datePrototype['setUTC' + unit]);
  }
  for (const name of ['toString', 'toDateString', 'toTimeString', 'toLocaleString', 'toLocaleDateString', 'toLocaleTimeString']) {
    lock(datePrototype, name, datePrototype.toUTCString);
  }
  lock(datePrototype, 'getTimezoneOffset', () => 0);
  delete datePrototype.getYear;
  delete datePrototype.setYear;

  const rangeErrorPrototype = RangeError.prototype;
  const tooDeep = (error) =>
    error !== null && typeof error === 'object' && getPrototypeOf(error) === rangeErrorPrototype && error.message === 'Maximum call stack size exceeded';
  const describe = (error) => {
    try {
      if (tooDeep(error)) return 'dThe calls nest too deep.';
      const message = typeof error === 'string' ? error : error.message;
      if (typeof message !== 'string' || message === '') return 'eA value without a message was thrown.';
      return (error.transient === true ? 't' : 'e') + head(message, ${MAX_MESSAGE});
    } catch {
      return 'eA value that cannot be read was thrown.';
    }
  };
  const kindOf = (value) => (value === null ? 'null' : isArray(value) ? 'an array' : typeof value);

  let factory;
  let main;
  let loaded = false;
  const load = () => {
    if (loaded) return;
    begin('');
    main = factory();
    if (typeof main !== 'function') throw new TypeError('Expected a function as the default export, found ' + kindOf(main) + '.');
    loaded = true;
  };

  let tools;
  let opened;
  const open = (publicJson, seed) => {
    load();
    begin(seed);
    const world = main({ public: parse(publicJson), random, runCode });
    tools = world === null || typeof world !== 'object' ? undefined : world.tools;
    if (tools === null || typeof tools !== 'object') {
      throw new TypeError('Expected an object { tools } from the default export (and no promise), found ' + kindOf(world) + '.');
    }
    opened = world;
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

  const call = (name, argumentsJson) => {
    now += 1000;
    const tool = hasOwn(tools, name) ? tools[name] : undefined;
    if (typeof tool !== 'function') return 'eThe world has no tool "' + head(name, 100) + '".';
    const text = apply(tool, tools, [parse(argumentsJson)]);
    if (typeof text !== 'string') return 'eThe tool must return a string, it returned ' + kindOf(text) + '.';
    if (text.length > ${MAX_TEXT}) return 'oThe tool returned ' + text.length + ' characters; at most ${MAX_TEXT} may leave the isolate.';
    return 'k' + text;
  };

  const runCode = (source, inputs) => {
    if (hostRunCode === undefined) throw new TypeError('This program runs no code of a policy: its declaration has no "code".');
    const texts = [];
    for (let i = 0; i < inputs.length; i++) defineProperty(texts, i, { value: NativeString(inputs[i]), enumerable: true });
    return parse(hostRunCode(NativeString(source), stringify(texts)));
  };

  // A promise needs one of these words, which no escape can spell: see the module's comment.
  const unfinished = /\b(?:async|await|import)\b/;
  const code = (source, inputsJson, limit) => {
    if (apply(test, unfinished, [source])) return 'rThe words async, await and import are not allowed in the code, not even in texts: nothing may go on after the call.';
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

  const run = (operation, a, b, limit) => {
    try {
      switch (operation) {
        case 'call':
          return call(a, b);
        case 'open':
          return open(a, b);
        case 'score':
          return score(a);
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
  };
  defineProperty(global, '${RUN}', { value: run, configurable: true });
  defineProperty(global, '${REGISTER}', {
    value: (made) => {
      deleteProperty(global, '${RUN}');
      deleteProperty(global, '${REGISTER}');
      factory = made;
    },
    configurable: true,
  });
})();
0`;
