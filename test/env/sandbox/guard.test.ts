import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import type ivm from 'isolated-vm';
import { afterEach, describe, expect, it } from 'vitest';
import { GONE, KEPT } from '../../../src/env/sandbox/globals.ts';
import { guarded, MAX_MESSAGE, MAX_TEXT } from '../../../src/env/sandbox/guard.ts';
import { isolatedVm } from '../../../src/env/sandbox/isolated-vm.ts';
import { CLOCK_START_MS } from '../../../src/env/sandbox/seeded.ts';
import { generator } from '../../../src/records/random.ts';
import { hostOf, LEVELS, outcomeOf, world } from './programs.ts';
import { REACHABLE } from './reachable.ts';

type CachedScript = ivm.Script & ivm.CachedDataResult & { readonly cachedDataRejected?: boolean };

const ok = (text: string) => ({ status: 'ok', text });
const error = (message: string | RegExp, transient = false) => ({
  status: 'error',
  message: typeof message === 'string' ? message : expect.stringMatching(message),
  transient,
});

describe('what the guard takes away', () => {
  it.each([
    'WebAssembly',
    'SharedArrayBuffer',
    'Atomics',
    'console',
    'WeakRef',
    'FinalizationRegistry',
    'Intl',
    'Temporal',
    'Promise',
    'eval',
    'process',
    'require',
    'setTimeout',
    'queueMicrotask',
    'isogymRunCode',
  ])('%s does not exist', (name) => {
    expect(outcomeOf(`return typeof ${name} + ' ' + (${JSON.stringify(name)} in globalThis);`)).toEqual(
      ok('undefined false'),
    );
  });

  it('the global object keeps the names that are known and no others, whatever the engine brings', () => {
    const names = outcomeOf('return Object.getOwnPropertyNames(globalThis).join();') as { text: string };
    expect(names.text.split(',').filter((name) => !KEPT.has(name))).toEqual([]);
    expect(names.text.split(',')).toEqual(expect.arrayContaining(['Object', 'Map', 'Iterator', 'Uint8Array', 'isNaN']));
  });

  it('the names that are gone exist in a context without it', () => {
    const isolate = new (isolatedVm().Isolate)({ memoryLimit: 8 });
    const bare = isolate.createContextSync().evalSync('Object.getOwnPropertyNames(globalThis).join()') as string;
    isolate.dispose();
    expect(bare.split(',').filter((name) => !KEPT.has(name))).toEqual([...GONE]);
    expect(GONE).toEqual(
      expect.arrayContaining(['WebAssembly', 'SharedArrayBuffer', 'Atomics', 'WeakRef', 'Intl', 'Promise', 'eval']),
    );
  });

  it('every function that can be reached is one that somebody has looked at, whatever the engine brings', () => {
    const known = new Set(
      readFileSync(new URL('./fixtures/reachable.txt', import.meta.url), 'utf8')
        .trim()
        .split('\n'),
    );
    const news = (paths: string) =>
      paths
        .trim()
        .split('\n')
        .filter((path) => !known.has(path));
    const { text } = outcomeOf(REACHABLE) as { text: string };
    expect(text.split('\n').length).toBeGreaterThan(450);
    expect(news(text)).toEqual([]);
    // Members of what is kept may lead to what is gone: with Temporal, those of dates do.
    const file = fileURLToPath(new URL('./reachable.ts', import.meta.url));
    const withTemporal = execFileSync(process.execPath, ['--harmony-temporal', file], { encoding: 'utf8' });
    expect(withTemporal.split('\n').length).toBeGreaterThan(450);
    expect(news(withTemporal)).toEqual([]);
  });

  it('no function that can be reached makes a promise, by its name', () => {
    const body = `
      const seen = new Set(), open = [globalThis], found = [];
      while (open.length > 0) {
        const at = open.pop();
        if (at === null || (typeof at !== 'object' && typeof at !== 'function') || seen.has(at)) continue;
        seen.add(at);
        if (typeof at === 'function' && /async|promise/i.test(at.name)) found.push(at.name);
        open.push(Object.getPrototypeOf(at));
        for (const key of Reflect.ownKeys(at)) {
          const { value, get, set } = Reflect.getOwnPropertyDescriptor(at, key);
          open.push(value, get, set);
        }
      }
      return seen.size > 500 ? found.join() : 'too few: ' + seen.size;`;
    expect(outcomeOf(body)).toEqual(ok(''));
  });

  it.each(['resize', 'transfer', 'transferToFixedLength'])('ArrayBuffer.prototype.%s does not exist', (name) => {
    expect(outcomeOf(`return typeof new ArrayBuffer(8).${name};`)).toEqual(ok('undefined'));
  });

  it('a buffer cannot be born resizable, by its name or by the constructor of another buffer', () => {
    const body = `
      const made = [new ArrayBuffer(8, { maxByteLength: 64 }), new (new Uint8Array(1).buffer.constructor)(8, { maxByteLength: 64 })];
      return made.map((buffer) => buffer.resizable + ' ' + buffer.byteLength + ' ' + (buffer instanceof ArrayBuffer)).join();`;
    expect(outcomeOf(body)).toEqual(ok('false 8 true,false 8 true'));
  });

  it.each(['prepareStackTrace', 'stackTraceLimit'])('Error.%s cannot be set, defined or deleted', (name) => {
    const body = `
      const before = Error.${name};
      const tries = [
        () => { Error.${name} = () => 1; },
        () => { Object.defineProperty(Error, '${name}', { get() { return 7; } }); },
        () => { delete Error.${name}; },
      ];
      const refused = tries.filter((attempt) => { try { attempt(); return false; } catch { return true; } }).length;
      return refused + ' ' + (Error.${name} === before);`;
    expect(outcomeOf(body)).toEqual(ok('3 true'));
  });

  it('an error carries no stack, hence no path or depth of the host', () => {
    expect(outcomeOf("return new Error('x').stack;")).toEqual(ok('Error: x'));
  });

  it.each([
    '({}).constructor.constructor("return process")()',
    '(() => {}).constructor("return 1")()',
    '(function* () {}).constructor("yield 1")()',
    '(async () => {}).constructor("await 1")()',
    '(async function* () {}).constructor("yield 1")()',
    'new Function("return 1")()',
    'Reflect.construct(Function, ["return 1"])()',
  ])('code from strings is refused: %s', (code) => {
    expect(outcomeOf(`return String(${code});`)).toEqual(error('Code from strings is not allowed inside the isolate.'));
  });

  it('functions are still instances of Function', () => {
    expect(outcomeOf('return String((() => 1) instanceof Function && Object instanceof Function);')).toEqual(
      ok('true'),
    );
  });

  it('Array.fromAsync, which would make a promise, does not exist', () => {
    expect(outcomeOf('return typeof Array.fromAsync;')).toEqual(ok('undefined'));
  });

  it('every object that can be reached from the global one is the context’s own: none of isolated-vm, none of the host', () => {
    const body = `
      const seen = new Set(); const open = [globalThis]; const names = new Set();
      while (open.length > 0) {
        const value = open.pop();
        if (value === null || (typeof value !== 'object' && typeof value !== 'function') || seen.has(value)) continue;
        seen.add(value);
        if (typeof value === 'function') names.add(value.name);
        open.push(Object.getPrototypeOf(value));
        for (const key of Reflect.ownKeys(value)) {
          const property = Object.getOwnPropertyDescriptor(value, key);
          open.push(property.value, property.get, property.set);
        }
      }
      return ['Reference', 'ExternalCopy', 'Isolate', 'Callback', 'Context', 'run', 'Promise', 'applySync'].filter((name) => names.has(name)).join() + ' ' + (seen.size > 500);`;
    expect(outcomeOf(body)).toEqual(ok(' true'));
  });

  it('what natives were replaced or taken away is not left behind as the constructor of a prototype', () => {
    const body = `
      const samples = [new ArrayBuffer(1), () => 1, function* () {}, async () => {}, async function* () {}, new Date(0)];
      return samples.map((sample) => [ArrayBuffer, Function, Date].includes(sample.constructor)).join();`;
    expect(outcomeOf(body)).toEqual(ok('true,true,true,true,true,true'));
  });

  it.each(['ArrayBuffer', 'Function', 'Date'])('%s cannot be replaced, nor anything that hangs on it', (name) => {
    const body = `
      const tries = [
        () => { globalThis.${name} = 1; },
        () => { ${name}.prototype = {}; },
        () => { ${name}.more = 1; },
      ];
      return tries.filter((attempt) => { try { attempt(); return false; } catch { return true; } }).length + '';`;
    expect(outcomeOf(body)).toEqual(ok('3'));
  });

  it('a program stands outside the guard: it sees nothing of what the guard holds', () => {
    const names = ['factory', 'NativeFunction', 'NativeDate', 'hostRunCode', 'run', 'lock', 'construct'];
    expect(
      outcomeOf(`return ${JSON.stringify(names)}.map((name) => typeof globalThis[name]).concat(
      typeof factory, typeof NativeFunction, typeof NativeDate, typeof hostRunCode, typeof run, typeof lock, typeof construct,
    ).filter((type) => type !== 'undefined').join();`),
    ).toEqual(ok(''));
  });

  it('a context whose door was taken and released is collected: three hundred of them in 8 MiB', () => {
    const isolate = new (isolatedVm().Isolate)({ memoryLimit: 8 });
    const script = isolate.compileScriptSync(guarded());
    for (let i = 0; i < 300; i++) {
      const context = isolate.createContextSync();
      const door = script.runSync(context, { reference: true });
      expect(door.typeof).toBe('function');
      door.release();
      context.release();
    }
    expect(isolate.isDisposed).toBe(false);
    isolate.dispose();
  });
});

it('what one isolate compiled the next takes over, and runs', () => {
  const text = guarded(world({ echo: '({ text }) => text' }));
  const doorOf = (options: object) => {
    const isolate = new (isolatedVm().Isolate)({ memoryLimit: 8 });
    const script = isolate.compileScriptSync(text, options) as CachedScript;
    return { isolate, script, door: script.runSync(isolate.createContextSync(), { reference: true }) };
  };
  const first = doorOf({ produceCachedData: true });
  first.isolate.dispose();
  const { isolate, script, door } = doorOf({ cachedData: first.script.cachedData });
  expect(script.cachedDataRejected).toBe(false);
  expect(door.applySync(undefined, ['open', 'null', 'seed', 0])).toBe('k');
  expect(door.applySync(undefined, ['call', 'echo', '{"text":"x"}', 0])).toBe('kx');
  isolate.dispose();
});

describe('what foreign code throws or returns is read inside the timeout', () => {
  it.each([
    ['a plain error', "throw new Error('no such key');", error('no such key')],
    ['a string', "throw 'no such key';", error('no such key')],
    ['an error marked transient', "throw Object.assign(new Error('busy'), { transient: true });", error('busy', true)],
    ['an error whose mark is truthy, not true', "throw Object.assign(new Error('x'), { transient: 1 });", error('x')],
    ['undefined', 'throw undefined;', error('A value that cannot be read was thrown.')],
    ['null', 'throw null;', error('A value that cannot be read was thrown.')],
    ['a number', 'throw 5;', error('A value without a message was thrown.')],
    ['a symbol', "throw Symbol('s');", error('A value without a message was thrown.')],
    ['an error without a message', 'throw new Error();', error('A value without a message was thrown.')],
    ['a message that is an object', 'throw { message: {} };', error('A value without a message was thrown.')],
    ['a getter that throws', 'throw { get message() { throw 1; } };', error(/cannot be read/)],
    ['a revoked Proxy', 'const p = Proxy.revocable({}, {}); p.revoke(); throw p.proxy;', error(/cannot be read/)],
    ['a getter that loops', 'throw { get message() { for (;;); } };', { status: 'timeout' }],
    ['a transient getter that loops', "throw { message: 'x', get transient() { for (;;); } };", { status: 'timeout' }],
    ['a Proxy that loops', 'throw new Proxy({}, { get() { for (;;); } });', { status: 'timeout' }],
    ['a stack that loops, which nobody reads', "throw { message: 'x', get stack() { for (;;); } };", error('x')],
    ['an endless recursion', 'const f = () => f(); f();', { ...error('The calls nest too deep.'), bound: 'too-deep' }],
    ['an endless loop', 'for (;;);', { status: 'timeout' }],
    ['a catastrophic regular expression', "/^(a+)+$/.test('a'.repeat(40) + 'b');", { status: 'timeout' }],
  ])('%s', (_, body, expected) => {
    expect(outcomeOf(body, expected.status === 'timeout' ? 200 : 5000)).toEqual(expected);
  });

  it.each([
    ['undefined', 'undefined', 'undefined'],
    ['null', 'null', 'null'],
    ['a number', '5', 'number'],
    ['an array', '["x"]', 'an array'],
    ['a String object', 'new String("x")', 'object'],
    ['an object whose toString loops', '{ toString() { for (;;); } }', 'object'],
    ['a Proxy', 'new Proxy({}, { get() { for (;;); } })', 'object'],
  ])('a tool that returns %s is an error that says so', (_, value, kind) => {
    expect(outcomeOf(`return (${value});`)).toEqual(error(`The tool must return a string, it returned ${kind}.`));
  });

  it('messages are capped', () => {
    expect(outcomeOf(`throw new Error('m'.repeat(100000));`)).toEqual(error('m'.repeat(MAX_MESSAGE)));
  });

  it('a result of the greatest length leaves the isolate, one character more does not', () => {
    expect(outcomeOf(`return 'x'.repeat(${MAX_TEXT});`)).toEqual(ok('x'.repeat(MAX_TEXT)));
    expect(outcomeOf(`return 'x'.repeat(${MAX_TEXT} + 1);`)).toEqual({
      ...error(/returned 1048577 characters; at most 1048576/),
      bound: 'too-much-output',
    });
    expect(outcomeOf("return 'x'.repeat(2 ** 29 - 100);")).toEqual({
      ...error(/may leave the isolate/),
      bound: 'too-much-output',
    });
  });

  it('the door holds when foreign code has rewritten every primordial that it could have used', () => {
    const body = `
      JSON.parse = JSON.stringify = () => { throw 1; };
      Reflect.apply = Object.hasOwn = Array.isArray = () => 'rewritten';
      String.prototype.slice = String.prototype.charCodeAt = function () { return 'rewritten'; };
      Array.prototype[Symbol.iterator] = function* () { yield 'rewritten'; };
      Object.defineProperty(Object.prototype, 'toJSON', { value: () => 'rewritten' });
      Function.prototype.call = Function.prototype.apply = () => 'rewritten';
      return 'done';`;
    const host = hostOf(
      world({
        attack: `() => { ${body} }`,
        echo: '(args) => args.text',
        fail: "() => { throw new Error('e'.repeat(600)); }",
      }),
    );
    const session = host.open('null', 'seed');
    expect(session.call('attack', '{}', 5000)).toEqual(ok('done'));
    expect(session.call('echo', '{"text":"as it was"}', 5000)).toEqual(ok('as it was'));
    expect(session.call('fail', '{}', 5000)).toEqual(error('e'.repeat(MAX_MESSAGE)));
    host.dispose();
  });

  it('a __proto__ among the arguments is a property, not a prototype', () => {
    const body = `(args) => Object.getPrototypeOf(args) === Object.prototype ? String(args.x) : 'polluted'`;
    const host = hostOf(world({ body }));
    expect(host.open('null', 's').call('body', '{"__proto__":{"x":1}}', 5000)).toEqual(ok('undefined'));
    host.dispose();
  });
});

describe('randomness and time are functions of the seed', () => {
  const hosts: { dispose(): void }[] = [];
  afterEach(() => {
    for (const host of hosts.splice(0)) host.dispose();
  });
  const draws = world({
    draws: '() => [Math.random(), random(), Math.random(), random()].join()',
    clock: '() => [Date.now(), +new Date(), Date(), new Date().toISOString()].join()',
  });

  it('inside, the random numbers are those of the same seed outside, at every reset level, also the second time', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 40 }), (seed) => {
        const outside = generator(seed);
        const expected = [outside(), outside(), outside(), outside()].join();
        for (const level of LEVELS) {
          const host = hostOf(draws, level);
          for (let time = 0; time < 2; time++) {
            const session = host.open('null', seed);
            expect(session.call('draws', '{}', 5000)).toEqual(ok(expected));
            session.close();
          }
          host.dispose();
        }
      }),
      { numRuns: 10 },
    );
  });

  it('a module that draws while it is loaded does not shift its episodes, and draws the same everywhere', () => {
    const script = draws.replace('return (', 'const salt = Math.random(); return (');
    expect(script).toContain('salt');
    const results = LEVELS.map((level) => {
      const host = hostOf(script, level);
      hosts.push(host);
      return [0, 1].map(() => {
        const session = host.open('null', 'seed');
        const outcome = session.call('draws', '{}', 5000);
        session.close();
        return outcome;
      });
    });
    expect(new Set(results.flat().map((outcome) => JSON.stringify(outcome))).size).toBe(1);
  });

  it('sessions that live at once do not share a generator', () => {
    for (const level of LEVELS) {
      const host = hostOf(draws, level);
      hosts.push(host);
      const [a, b] = [host.open('null', 'a'), host.open('null', 'b')];
      const alone = (seed: string) => {
        const outside = generator(seed);
        return Array.from({ length: 8 }, outside);
      };
      const interleaved = [a, b, a, b].map((session) => session.call('draws', '{}', 5000));
      expect(interleaved).toEqual([
        ok(alone('a').slice(0, 4).join()),
        ok(alone('b').slice(0, 4).join()),
        ok(alone('a').slice(4).join()),
        ok(alone('b').slice(4).join()),
      ]);
    }
  });

  it('Math.random cannot be replaced', () => {
    expect(outcomeOf('Math.random = () => 0.5; return "";')).toEqual(error(/read only/));
  });

  it('the clock stands still within a call and moves by a second with each, whatever the seed', () => {
    for (const level of LEVELS) {
      const host = hostOf(draws, level);
      hosts.push(host);
      for (const seed of ['a', 'b']) {
        const session = host.open('null', seed);
        for (const call of [1, 2]) {
          const at = new Date(CLOCK_START_MS + 1000 * call);
          const expected = [+at, +at, at.toUTCString(), at.toISOString()].join();
          expect(session.call('clock', '{}', 5000)).toEqual(ok(expected));
        }
        session.close();
      }
    }
  });

  it('the real clock cannot be reached by way of a date’s constructor or a subclass', () => {
    const body = `
      class Mine extends Date {}
      const year = (date) => date.toISOString().slice(0, 10) + ' ' + (date instanceof Date);
      return [new (new Date(0).constructor)(), new Mine(), Reflect.construct(Date, [])].map(year).join();`;
    expect(outcomeOf(body)).toEqual(ok('2025-01-01 true,2025-01-01 true,2025-01-01 true'));
  });

  it('neither time zone nor locale of the host shows', () => {
    const before = process.env.TZ;
    const body = `
      const dates = [
        new Date(2020, 0, 1), new Date(99, 0), new Date('2020-01-01T00:00'), new Date('2020-01-01'), new Date('2020-01-01 10:00'),
        new Date('Jan 5 2020 10:00'), new Date('2020-01-01T00:00+01:00'), new Date('Jan 5 2020 10:00 GMT+0100 (CET)'),
        new Date(new Date(5)), new Date('nonsense'),
      ];
      const local = new Date(0); local.setHours(5); local.setDate(2);
      return [
        ...dates.map((date) => date.getTime()), local.getTime(), local.getHours(), local.getTimezoneOffset(), String(local), local.toLocaleDateString(),
        (1234567.5).toLocaleString(), (10n ** 6n).toLocaleString(), [1234.5].toLocaleString(), new Float64Array([1234.5]).toLocaleString(),
        'I'.toLocaleLowerCase(), 'i'.toLocaleUpperCase(), 'a'.localeCompare('B'), 'a'.localeCompare('a'),
      ].join('|');`;
    const expected = [
      Date.UTC(2020, 0, 1),
      Date.UTC(1999, 0),
      Date.UTC(2020, 0, 1),
      Date.UTC(2020, 0, 1),
      Date.UTC(2020, 0, 1, 10),
      Date.UTC(2020, 0, 5, 10),
      Date.UTC(2019, 11, 31, 23),
      Date.UTC(2020, 0, 5, 9),
      5,
      Number.NaN,
      Date.UTC(1970, 0, 2, 5),
      5,
      0,
      'Fri, 02 Jan 1970 05:00:00 GMT',
      'Fri, 02 Jan 1970 05:00:00 GMT',
      '1234567.5',
      '1000000',
      '1234.5',
      '1234.5',
      'i',
      'I',
      1,
      0,
    ].join('|');
    try {
      for (const zone of ['America/New_York', 'Asia/Kolkata', 'UTC']) {
        process.env.TZ = zone;
        expect(new Date(2020, 0, 1).getTimezoneOffset() === 0).toBe(zone === 'UTC');
        expect(outcomeOf(body)).toEqual(ok(expected));
      }
    } finally {
      if (before === undefined) delete process.env.TZ;
      else process.env.TZ = before;
    }
  });

  /** What one body of code comes to in hosts of different time zones. */
  function inZones(body: string): readonly string[] {
    const before = process.env.TZ;
    try {
      return ['UTC', 'America/New_York', 'Asia/Kolkata'].map((zone) => {
        process.env.TZ = zone;
        expect(new Date(2020, 0, 1).getTimezoneOffset() === 0).toBe(zone === 'UTC');
        return (outcomeOf(body) as { text: string }).text;
      });
    } finally {
      if (before === undefined) delete process.env.TZ;
      else process.env.TZ = before;
    }
  }

  it.each([
    ["new String('2020-01-01 10:00')", '2020-01-01T10:00:00.000Z'],
    ["{ toString: () => '2020-01-01T00:00' }", '2020-01-01T00:00:00.000Z'],
    ["{ valueOf: () => ({}), toString: () => '2020-01-01T00:00' }", '2020-01-01T00:00:00.000Z'],
    ["{ valueOf: () => '2020-01-01T00:00', toString: () => 'no' }", '2020-01-01T00:00:00.000Z'],
    ["{ [Symbol.toPrimitive]: (hint) => '2020-01-01 10:00 ' + (hint === 'default') }", 'NaN'],
    ["{ [Symbol.toPrimitive]: (hint) => (hint === 'default' ? '2020-01-01 10:00' : '') }", '2020-01-01T10:00:00.000Z'],
    ["['2020-01-01 10:00']", '2020-01-01T10:00:00.000Z'],
    ["Object.assign(() => 1, { toString: () => '2020-01-01 10:00' })", '2020-01-01T10:00:00.000Z'],
    [
      "new Proxy({}, { get: (_, key) => key === 'toString' ? () => '2020-01-01 10:00' : undefined })",
      '2020-01-01T10:00:00.000Z',
    ],
    ['Object.defineProperty(new Date(5), Symbol.toPrimitive, { value: () => 7 })', '1970-01-01T00:00:00.005Z'],
    ['{ valueOf: () => 5 }', '1970-01-01T00:00:00.005Z'],
    ['{ valueOf: () => ({}), toString: () => ({}) }', 'TypeError'],
    ['{ [Symbol.toPrimitive]: () => ({}) }', 'TypeError'],
    ['{ [Symbol.toPrimitive]: 1 }', 'TypeError'],
    ["Symbol('s')", 'TypeError'],
    ['null', '1970-01-01T00:00:00.000Z'],
    ['undefined', 'NaN'],
    ['true', '1970-01-01T00:00:00.001Z'],
    ["'Jan 5 2020 (z'", '2020-01-05T00:00:00.000Z'],
    ["'Jan 5 2020 (a (b) z) 10:00'", '2020-01-05T10:00:00.000Z'],
    ["'Jan 5 2020 10:00\\0Z'", '2020-01-05T10:00:00.000Z'],
    ["'01-05-2020'", '2020-01-05T00:00:00.000Z'],
    ["'Jan-05-2020'", '2020-01-05T00:00:00.000Z'],
    ["'Sun, 05 Jan 2020 10:00:00 +0100'", '2020-01-05T09:00:00.000Z'],
    ["'2020-01-05 10:00+01:00'", '2020-01-05T09:00:00.000Z'],
    ["'Jan 5 2020 10:00 EST'", '2020-01-05T15:00:00.000Z'],
    ["'2020-01T10:00'", '2020-01-01T10:00:00.000Z'],
    ["(RegExp.prototype.exec = () => [''], '2020-01-05 10:00')", '2020-01-05T10:00:00.000Z'],
  ])('new Date(%s) is %s, wherever the host is', (value, expected) => {
    const body = `
      try {
        const date = new Date(${value});
        return isNaN(date) ? 'NaN' : date.toISOString();
      } catch (error) {
        return error.constructor.name;
      }`;
    expect(inZones(body)).toEqual(Array(3).fill(expected));
  });

  it('no text that is put together from what dates are written with shows the time zone of the host', () => {
    const parts =
      `Jan|5|2020|2020-01-05|T|10:00|10:00:30|10:00:00.5|1:|::|.|-|+|-0500|+0100|+01|-05:00|01-05-2020|(|(z|(z)|)|z|Z|GMT|
      UTC|ut|EST|pdt| |\0|mar|mar-|am|PM|,|/|é|_|\u00a0|99|123456|0|24:00|+002020-01-01T00:00|2020T10:00`.split(
        /\|\s*(?=\S)|\|(?= )/,
      );
    const text = fc
      .tuple(fc.array(fc.constantFrom(...parts), { minLength: 1, maxLength: 7 }), fc.constantFrom('', ' '))
      .map(([some, between]) => some.join(between));
    const texts = fc.sample(text, { numRuns: 20_000, seed: 1 });
    const [utc, ...others] = inZones(
      `return JSON.stringify(${JSON.stringify(texts)}.map((text) => +new Date(text)));`,
    ).map((json) => JSON.parse(json) as (number | null)[]);
    expect(utc!.filter((time) => time !== null).length).toBeGreaterThan(1000);
    for (const times of others) expect(texts.filter((_, i) => times[i] !== utc![i])).toEqual([]);
  });
});
