import { describe, expect, it, test } from 'vitest';
import { type ForkableWorld, WorldHost } from '../../../src/env/sandbox/world-host.ts';
import { hostOf, LEVELS, program } from './programs.ts';

/** Its state: a count, a list, the generator and the clock; `extra` are members beside its tools. */
const counting = (extra: string) =>
  program(`({ random, public: given }) => {
    let count = 0;
    let list = [];
    return {
      ${extra}
      tools: {
        add: ({ by }) => { count += by; list.push(random()); return count + ' ' + list.join() + ' ' + Math.random() + ' ' + Date.now() + ' ' + given; },
        fail: () => { count++; throw new Error('no'); },
        loop: () => { for (;;); },
      },
    };
  }`);
const WORLDS = {
  'without a snapshot': counting(''),
  'with a snapshot': counting('snapshot: () => ({ count, list }), restore: (state) => { ({ count, list } = state); },'),
};
/** Forgets its list. */
const FORGETFUL = counting('snapshot: () => ({ count, list }), restore: (state) => { count = state.count; },');

const add = (world: ForkableWorld, by: number) => world.call('add', JSON.stringify({ by }), 5000);
const begun = (host: WorldHost) => {
  const world = host.open('"x"', 'seed');
  add(world, 1);
  world.call('fail', '{}', 5000);
  add(world, 2);
  return world;
};

describe.each(Object.entries(WORLDS))('a world %s', (_, script) => {
  it.each(LEVELS)('on level %s: a fork goes on as the original does, and neither touches the other', (level) => {
    const host = hostOf(script, level);
    const [original, straight] = [begun(host), begun(host)];
    const fork = original.fork();
    const other = original.fork();
    expect(fork.stateHash()).toBe(original.stateHash());
    // Another way in each of them, in turns.
    add(other, 100);
    const said = [add(original, 3), add(original, 4)];
    add(other, 100);
    expect([add(fork, 3), add(fork, 4)]).toEqual(said);
    expect([add(straight, 3), add(straight, 4)]).toEqual(said);
    expect(fork.stateHash()).toBe(original.stateHash());
    expect(other.stateHash()).not.toBe(original.stateHash());
    // A fork of a fork, once its parent is gone.
    original.close();
    const third = fork.fork();
    fork.close();
    expect(add(third, 5)).toEqual(add(straight, 5));
    host.dispose();
  });

  it('has one state for one history, and another for another task, seed or call', () => {
    const host = hostOf(script);
    const hash = (publicJson: string, seed: string, ...by: number[]) => {
      const world = host.open(publicJson, seed);
      for (const one of by) add(world, one);
      return world.stateHash();
    };
    expect(hash('1', 's', 1)).toBe(hash('1', 's', 1));
    expect(hash('1', 's', 1)).toMatch(/^[0-9a-f]{64}$/);
    const others = [
      ...[hash('1', 's'), hash('1', 's', 1), hash('1', 's', 2), hash('1', 't', 1), hash('1', 's', 1, 1)],
      ...[hash('2', 's'), hash('2', 's', 1)],
    ];
    expect(new Set(others).size).toBe(others.length);
    host.dispose();
  });

  it('cannot be forked once a call ran late, or once it is closed; the fork before that lives on', () => {
    const host = hostOf(script, 'isolate');
    const world = begun(host);
    const fork = world.fork();
    expect(world.call('loop', '{}', 50).status).toBe('timeout');
    expect(() => world.fork()).toThrow(expect.objectContaining({ code: 'FORK_IMPOSSIBLE' }));
    expect(() => world.stateHash()).toThrow('found one whose call ended with timeout');
    expect(add(fork, 1).status).toBe('ok');
    fork.close();
    expect(() => fork.fork()).toThrow('found one that is closed');
    host.dispose();
  });
});

test('a fork by snapshot runs no call again, one without does', () => {
  const traced = (extra: string) =>
    program(`() => { let calls = 0; return { ${extra} tools: { add: () => { calls++; return '' + calls; } } }; }`);
  const fails = traced('snapshot: () => calls, restore: () => { throw new Error("restored"); },');
  expect(() => begun(hostOf(fails)).fork()).toThrow(/restore\(\) to take the snapshot.*restored/);
});

test('a restore that forgets something is found out', () => {
  const host = hostOf(FORGETFUL);
  expect(() => begun(host).fork()).toThrow(expect.objectContaining({ code: 'FORK_DIVERGED' }));
  host.dispose();
});

test.each([
  ['half a declaration', 'snapshot: () => 1,', 'both snapshot and restore'],
  ['no JSON value', 'snapshot: () => undefined, restore: () => {},', 'Expected a JSON value'],
  ['one that throws', 'snapshot: () => { throw new Error("no") }, restore: () => {},', 'no'],
  ['one that is too long', 'snapshot: () => "x".repeat(2e6), restore: () => {},', 'may leave the isolate'],
])('a snapshot that is none is refused: %s', (_, extra, message) => {
  const host = hostOf(counting(extra));
  expect(() => begun(host).fork()).toThrow(message);
  host.dispose();
});

test('a world that is not the same every time is found out by its fork', () => {
  const leaky = `let all = 0; globalThis.all = 0; ({ }) => ({ tools: { add: () => String(++globalThis.all) } })`;
  // At level `state` what it leaves in its realm is still there when the realm is used again.
  const host = hostOf(program(`(() => { ${leaky.replace('({ }) =>', 'return () =>')} })()`), 'state');
  const first = host.open('0', 's');
  add(first, 1);
  first.close();
  const second = host.open('0', 's');
  expect(add(second, 1)).toEqual({ status: 'ok', text: '2' });
  expect(() => second.fork()).toThrow(/to come to .*"2".* again, found .*"1"/);
  host.dispose();
});

test('where a policy’s code runs, what it ran is counted in a fork too', () => {
  const script = program(`({ runCode }) => ({
    snapshot: () => 0,
    restore: () => {},
    tools: { run: () => runCode('() => 1', ['0'])[0].failure ?? 'ran' },
  })`);
  const code = { timeoutMs: 1000, memoryMiB: 16, maxOutput: 100, maxRuns: 2 };
  const host = new WorldHost({ script, reset: 'context', memoryMiB: 32, code });
  const world = host.open('0', 's');
  const run = (one: ForkableWorld) => one.call('run', '{}', 5000);
  expect(run(world)).toEqual({ status: 'ok', text: 'ran' });
  const fork = world.fork();
  for (const one of [world, fork]) {
    expect([run(one), run(one)]).toMatchObject([{ text: 'ran' }, { text: 'too-many-calls' }]);
  }
  host.dispose();
});
