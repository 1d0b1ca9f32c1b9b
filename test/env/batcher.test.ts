import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { Batcher, type Schedule } from '../../src/env/batcher.ts';
import type { TokenPolicy, TokenReply, TokenRequest } from '../../src/policy/token-policy.ts';
import { generator } from '../../src/records/random.ts';

const request = (episodeId: string): TokenRequest => ({ episodeId, newIds: [1], maxTokens: 99, seed: episodeId });
const reply = (ticks: number): TokenReply => ({ ids: Array(ticks).fill(1), logprobs: null, cutOff: false });

/** Each action of an episode takes so many ticks; keeps what happened, in order: `+` who joined, then all who are written. */
function recording(actions: Readonly<Record<string, readonly number[]>>): TokenPolicy & { log: string[] } {
  const log: string[] = [];
  const turn = new Map<string, number>();
  let writing: { episodeId: string; left: number; reply: TokenReply }[] = [];
  return {
    name: 'recording',
    version: 1,
    log,
    async tick(joining) {
      for (const { episodeId } of joining) {
        const at = turn.get(episodeId) ?? 0;
        turn.set(episodeId, at + 1);
        const left = actions[episodeId]?.[at] ?? 1;
        writing.push({ episodeId, left, reply: reply(left) });
      }
      const who = (of: readonly { episodeId: string }[]) => of.map(({ episodeId }) => episodeId).join('');
      log.push(`${joining.length > 0 ? `+${who(joining)} ` : ''}${who(writing)}`);
      for (const row of writing) row.left--;
      const finished = writing.filter(({ left }) => left === 0);
      writing = writing.filter(({ left }) => left > 0);
      return finished;
    },
    release: (ids) => {
      writing = writing.filter(({ episodeId }) => !ids.includes(episodeId));
      log.push(`-${ids.join('')}`);
    },
  };
}

/** Episodes that ask once for each of their actions; the environment takes `latency` turns of the event loop before each. */
async function simulate(
  actions: Readonly<Record<string, readonly number[]>>,
  schedule: Schedule,
  latency: () => number = () => 0,
): Promise<string[]> {
  const policy = recording(actions);
  const batcher = new Batcher(policy, Object.keys(actions), schedule);
  const episodes = Object.entries(actions).map(async ([id, lengths]) => {
    await batcher.begun(id);
    for (const length of lengths) {
      for (let turns = latency(); turns > 0; turns--) await nextTurn();
      expect(await batcher.ask(request(id))).toEqual(reply(length));
    }
    for (let turns = latency(); turns > 0; turns--) await nextTurn();
    batcher.end(id);
  });
  await Promise.all([batcher.run(), ...episodes]);
  return policy.log;
}

it('all join at first, in the order of the requests; an action that is finished leaves, and the others go on without it', async () => {
  expect(await simulate({ a: [2], b: [1], c: [2] }, { live: 9 })).toEqual(['+abc abc', '-b', 'ac', '-ac']);
});

it('there is no barrier: who has finished joins again beside those that still write, once a quarter of the rows has left', async () => {
  expect(await simulate({ a: [6], b: [6], c: [1, 1], d: [1, 2] }, { live: 9 })).toEqual([
    '+abcd abcd',
    '+cd abcd',
    '-c',
    'abd',
    '-d',
    'ab',
    'ab',
    'ab',
    '-ab',
  ]);
});

it('at most so many live at once, and the next in the queue takes the place of one that has ended', async () => {
  expect(await simulate({ a: [3], b: [1], c: [1], d: [1] }, { live: 2 })).toEqual([
    '+ab ab',
    '-b',
    '+c ac',
    '-c',
    '+d ad',
    '-ad',
  ]);
});

it('one long episode does not keep the others waiting', async () => {
  const short = Object.fromEntries([...'bcdefghijklm'].map((id) => [id, [1, 1]]));
  const log = await simulate({ a: [30], ...short }, { live: 4 });
  const ticks = log.filter((line) => !line.startsWith('-'));
  expect(ticks).toHaveLength(30);
  // Three beside it in each tick until none is left: twelve of two actions each.
  expect(ticks.slice(0, 8).map((line) => line.split(' ').at(-1)?.length)).toEqual(Array(8).fill(4));
});

it.each([1, 2, 3, 5, 500])('case 24: shuffled latencies change no tick, with %i live at once', async (live) => {
  const random = generator('actions');
  const actions = Object.fromEntries(
    [...'abcdefghijklmnopqrstuvwx'].map((id) => [
      id,
      Array.from({ length: Math.floor(random() * 5) }, () => 1 + Math.floor(random() ** 3 * 20)),
    ]),
  );
  const expected = await simulate(actions, { live });
  for (let shuffle = 0; shuffle < 8; shuffle++) {
    const latency = generator(`latency/${shuffle}`);
    expect(await simulate(actions, { live }, () => Math.floor(latency() * 6))).toEqual(expected);
  }
});

it('an episode whose worker dies while it waits, or while it is written to, leaves the batch to the others', async () => {
  const policy = recording({ a: [5], b: [3, 1], c: [1] });
  const batcher = new Batcher(policy, ['a', 'b', 'c'], { live: 9 });
  const running = batcher.run();
  const [, b] = [batcher.ask(request('a')), batcher.ask(request('b')), batcher.ask(request('c'))];
  batcher.end('c');
  await nextTurn();
  batcher.end('a');
  expect(await b).toEqual(reply(3));
  expect(await batcher.ask(request('b'))).toEqual(reply(1));
  batcher.end('b');
  await running;
  expect(policy.log).toEqual(['-c', '+ab ab', '-a', 'b', 'b', '+b b', '-b']);
});

it('one that dies before it has begun is not waited for', async () => {
  const policy = recording({});
  const batcher = new Batcher(policy, ['a', 'b', 'c'], { live: 1 });
  const running = batcher.run();
  expect([batcher.hasBegun('a'), batcher.hasBegun('b')]).toEqual([true, false]);
  batcher.end('b');
  await batcher.ask(request('a'));
  batcher.end('a');
  await batcher.begun('c');
  batcher.end('c');
  await running;
});

it('a policy that fails, or answers who has not asked, fails what it was writing and not what comes after', async () => {
  const policy = recording({});
  const good = policy.tick;
  const batcher = new Batcher(policy, ['a', 'b'], { live: 9 });
  const running = batcher.run();
  for (const [tick, words] of [
    [() => Promise.reject(new Error('out of memory')), 'out of memory'],
    [
      async () => ['a', 'a'].map((episodeId) => ({ episodeId, reply: reply(1) })),
      'expected a reply to who had asked, found one to a',
    ],
  ] as const) {
    policy.tick = tick;
    const asked = await Promise.allSettled([batcher.ask(request('a')), batcher.ask(request('b'))]);
    expect(asked.at(-1)).toMatchObject({ reason: { message: words } });
  }
  policy.tick = good;
  expect(await Promise.all([batcher.ask(request('a')), batcher.ask(request('b'))])).toEqual([reply(1), reply(1)]);
  batcher.end('a');
  batcher.end('b');
  await running;
});

it('an id given twice is refused: its episodes could not be told apart', () => {
  expect(() => new Batcher(recording({}), ['a', 'b', 'a'])).toThrow(
    'expected a different id for each request, found a twice',
  );
});
