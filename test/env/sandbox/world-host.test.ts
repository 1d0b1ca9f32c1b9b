import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { heapLimitHolds } from '../../../src/env/sandbox/isolated-vm.ts';
import { WorldFailure, WorldHost } from '../../../src/env/sandbox/world-host.ts';
import { hostOf, LEVELS, program, world } from './programs.ts';

const ok = (text: string) => ({ status: 'ok', text });

/** Any sequence of UTF-16 code units: lone surrogates, NUL and U+2028 among them. */
const anyString = fc.oneof(
  fc.array(fc.nat(0xffff), { maxLength: 40 }).map((units) => String.fromCharCode(...units)),
  fc.constantFrom(
    '\u0000',
    '\u2028\u2029',
    '\ud800',
    '\udc00\ud800',
    'a\ud83d',
    '你好',
    '😀',
    '\u0000\ufeff\uffff',
    '',
  ),
);

function failureOf(host: WorldHost): WorldFailure {
  try {
    host.open('null', 'seed');
  } catch (error) {
    if (error instanceof WorldFailure) return error;
    throw error;
  }
  throw new Error('the world opened');
}

/** Grows the heap in a way that isolated-vm survives, where the engine holds a heap to its limit: elsewhere it would eat the machine's memory. */
const BOMB = '() => { const all = []; for (;;) all.push(new Array(1000).fill(1)); }';

describe('strings on the line', () => {
  it('case 18: arguments, results, public data and error messages survive the line to the last code unit', () => {
    const host = hostOf(
      program(
        '({ public: given }) => ({ tools: { echo: (args) => args.text, given: () => given.text, fail: (args) => { throw new Error(args.text); } } })',
      ),
    );
    fc.assert(
      fc.property(anyString, anyString, (text, given) => {
        const session = host.open(JSON.stringify({ text: given }), 'seed');
        expect(session.call('echo', JSON.stringify({ text }), 5000)).toEqual(ok(text));
        expect(session.call('given', '{}', 5000)).toEqual(ok(given));
        if (text !== '') {
          const outcome = { status: 'error', message: text, transient: false };
          expect(session.call('fail', JSON.stringify({ text }), 5000)).toEqual(outcome);
        }
        session.close();
      }),
      { numRuns: 200 },
    );
    host.dispose();
  });

  it('a string that is not escaped as JSON would escape it crosses as well: here the seed and a tool’s name', () => {
    const host = hostOf(
      program(
        '({ random }) => { const first = String(random()); return { tools: new Proxy({}, { getOwnPropertyDescriptor: (_, key) => ({ value: 1, configurable: true }), get: (_, key) => () => key + first }) }; }',
      ),
    );
    const first = (seed: string) => {
      const session = host.open('null', seed);
      const outcome = session.call('\ud800\u0000\u2028', '{}', 5000);
      session.close();
      return outcome.status === 'ok' ? outcome.text : '';
    };
    expect(first('a\ud800').startsWith('\ud800\u0000\u2028')).toBe(true);
    expect(first('a\ud800')).not.toBe(first('a\udbff'));
    host.dispose();
  });
});

describe.each(LEVELS)('a world at level %s', (level) => {
  it('answers calls, several sessions at once, each with its own state', () => {
    const host = hostOf(
      program('({ public: given }) => { let n = given; return { tools: { next: () => String(n++) } }; }'),
      level,
    );
    const sessions = Array.from({ length: 40 }, (_, i) => host.open(String(100 * i), 'seed'));
    for (let round = 0; round < 3; round++) {
      sessions.forEach((session, i) => {
        expect(session.call('next', '{}', 5000)).toEqual(ok(String(100 * i + round)));
      });
    }
    for (const session of sessions) session.close();
    expect(host.open('7', 'seed').call('next', '{}', 5000)).toEqual(ok('7'));
    host.dispose();
  });

  it('keeps nothing of an episode that create() makes anew', () => {
    const host = hostOf(
      program(
        '() => { const seen = []; return { tools: { add: (args) => { seen.push(args.x); return seen.join(); } } }; }',
      ),
      level,
    );
    for (const x of [1, 2, 3]) {
      const session = host.open('null', 'seed');
      expect(session.call('add', JSON.stringify({ x }), 5000)).toEqual(ok(String(x)));
      session.close();
    }
    host.dispose();
  });

  it.each([
    ['throws', "() => { throw new Error('no facts'); }", /create\(\) threw: no facts/],
    ['loops', '() => { for (;;); }', /longer than 200 ms/],
    ['throws what loops when read', '() => { throw { get message() { for (;;); } }; }', /longer than 200 ms/],
    ['gives no object', '() => 5', /Expected an object \{ tools \}.*found number/],
    ['gives an object without tools', '() => ({})', /Expected an object \{ tools \}/],
  ])('whose create() %s is a failure of the environment, and the next world opens', (_, create, message) => {
    const host = hostOf(
      program(`(start) => start.public === null ? (${create})(start) : { tools: { hi: () => 'hi' } }`),
      level,
      200,
    );
    const failure = failureOf(host);
    expect(failure.failure).toBeUndefined();
    expect(failure.code).toBe('ENVIRONMENT_FAILURE');
    expect(failure.message).toMatch(message);
    expect(host.open('1', 'seed').call('hi', '{}', 5000)).toEqual(ok('hi'));
    host.dispose();
  });

  it.skipIf(!heapLimitHolds())(
    'whose create() uses up the memory is a failure of the sandbox, and the next world opens',
    () => {
      const host = hostOf(
        program(`(start) => start.public === null ? (${BOMB})() : { tools: { hi: () => 'hi' } }`),
        level,
        20_000,
      );
      const failure = failureOf(host);
      expect(failure.failure).toBe('out-of-memory');
      expect(failure.code).toBe('SANDBOX_FAILURE');
      expect(host.open('1', 'seed').call('hi', '{}', 5000)).toEqual(ok('hi'));
      host.dispose();
    },
  );

  it('answers an unknown tool, and a name from a prototype, with an error', () => {
    const host = hostOf(world({ hi: "() => 'hi'", no: '5' }), level);
    const session = host.open('null', 'seed');
    for (const name of ['lookup', 'toString', '__proto__', 'constructor', 'no', '']) {
      expect(session.call(name, '{}', 5000)).toEqual({
        status: 'error',
        message: `The world has no tool "${name}".`,
        transient: false,
      });
    }
    expect(session.call('hi', '{}', 5000)).toEqual(ok('hi'));
    host.dispose();
  });

  it('that ran late is crashed from then on; its sibling goes on, and the next session works', () => {
    const host = hostOf(world({ loop: '() => { for (;;); }', hi: "() => 'hi'" }), level);
    const [late, sibling] = [host.open('null', 'a'), host.open('null', 'b')];
    expect(late.call('loop', '{}', 50)).toEqual({ status: 'timeout' });
    expect(late.call('hi', '{}', 5000)).toEqual({
      status: 'crashed',
      kind: 'died',
      message: 'An earlier operation took longer than its 50 ms.',
    });
    expect(sibling.call('hi', '{}', 5000)).toEqual(ok('hi'));
    late.close();
    expect(host.open('null', 'c').call('hi', '{}', 5000)).toEqual(ok('hi'));
    expect(sibling.call('hi', '{}', 5000)).toEqual(ok('hi'));
    sibling.close();
    expect(host.open('null', 'd').call('hi', '{}', 5000)).toEqual(ok('hi'));
    host.dispose();
  });

  it.skipIf(!heapLimitHolds())('that used up its memory is crashed, and the next session works', () => {
    const host = hostOf(world({ bomb: BOMB, hi: "() => 'hi'" }), level);
    const session = host.open('null', 'a');
    expect(session.call('bomb', '{}', 20_000)).toMatchObject({
      status: 'crashed',
      kind: 'out-of-memory',
      message: expect.stringMatching(/memory/),
    });
    expect(session.call('hi', '{}', 5000)).toMatchObject({ status: 'crashed' });
    session.close();
    expect(host.open('null', 'b').call('hi', '{}', 5000)).toEqual(ok('hi'));
    host.dispose();
  });

  it('that is closed answers crashed, closing it again does nothing', () => {
    const host = hostOf(world({ hi: "() => 'hi'" }), level);
    const first = host.open('null', 'a');
    first.close();
    first.close();
    const [second, third] = [host.open('null', 'b'), host.open('null', 'c')];
    expect(first.call('hi', '{}', 5000)).toEqual({
      status: 'crashed',
      kind: 'died',
      message: 'The session is closed.',
    });
    expect([second, third].map((session) => session.call('hi', '{}', 5000))).toEqual([ok('hi'), ok('hi')]);
    host.dispose();
  });

  it('opens and closes three hundred times within one heap limit', () => {
    const host = new WorldHost({ script: world({ hi: "() => 'hi'" }), reset: level, memoryMiB: 16 });
    for (let i = 0; i < 300; i++) {
      const session = host.open('null', String(i));
      expect(session.call('hi', '{}', 5000)).toEqual(ok('hi'));
      session.close();
    }
    host.dispose();
  }, 20_000);

  it('of a host that was disposed is crashed', () => {
    const host = hostOf(world({ hi: "() => 'hi'" }), level);
    const session = host.open('null', 'a');
    host.dispose();
    expect(session.call('hi', '{}', 5000)).toMatchObject({ status: 'crashed' });
    session.close();
  });
});

describe('how far the levels renew a world', () => {
  const counting = `
    ${world({ count: '() => String(++count)', mark: '() => String(Object.prototype.mark = (Object.prototype.mark ?? 0) + 1)' })}`.replace(
    'return (',
    'let count = 0; return (',
  );
  const twice = (level: (typeof LEVELS)[number], tool: string) => {
    const host = hostOf(counting, level);
    const texts = [0, 1].map(() => {
      const session = host.open('null', 'seed');
      const outcome = session.call(tool, '{}', 5000);
      session.close();
      return outcome.status === 'ok' ? outcome.text : outcome.status;
    });
    host.dispose();
    return texts;
  };

  it.each(['context', 'isolate'] as const)('%s renews the module’s own variables and the primordials', (level) => {
    expect(twice(level, 'count')).toEqual(['1', '1']);
    expect(twice(level, 'mark')).toEqual(['1', '1']);
  });

  it('state renews neither: that is what its author vouches for', () => {
    expect(twice('state', 'count')).toEqual(['1', '2']);
    expect(twice('state', 'mark')).toEqual(['1', '2']);
  });

  it.skipIf(!heapLimitHolds())('an isolate’s death takes no session in another isolate with it', () => {
    const host = hostOf(world({ bomb: BOMB, hi: "() => 'hi'" }), 'isolate');
    const [victim, sibling] = [host.open('null', 'a'), host.open('null', 'b')];
    expect(victim.call('bomb', '{}', 20_000)).toMatchObject({ status: 'crashed' });
    expect(sibling.call('hi', '{}', 5000)).toEqual(ok('hi'));
    host.dispose();
  });
});

describe('a program that gives no world', () => {
  it.each([
    ['exports no function', 'undefined', /Expected a function as the default export, found undefined/],
    ['throws while it is loaded', "(() => { throw new Error('at load'); })()", /at load/],
    ['loops while it is loaded', '(() => { for (;;); })()', /longer than 100 ms/],
    [
      'throws what loops when read, while it is loaded',
      '(() => { throw { get stack() { for (;;); }, message: "m" }; })()',
      /threw: m/,
    ],
  ])('because it %s is a failure of the environment', (_, defaultExport, message) => {
    const host = hostOf(program(defaultExport), 'context', 100);
    const failure = failureOf(host);
    expect(failure.failure).toBeUndefined();
    expect(failure.message).toMatch(message);
    host.dispose();
  });
});
