import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { Batcher, type TokenAnswer } from '../../../src/env/rollouts/batcher.ts';
import type { BatchFigures, Schedule } from '../../../src/env/rollouts/schedule.ts';
import type { TokenPolicy, TokenReply, TokenRequest } from '../../../src/policy/token-policy.ts';
import { generator } from '../../../src/records/random.ts';

const request = (episodeId: string): TokenRequest => ({ episodeId, newIds: [1], maxTokens: 99, seed: episodeId });
const reply = (ticks: number): TokenReply => ({ ids: Array(ticks).fill(1), logprobs: null, cutOff: false });

/** Ids as episodes; those with the same first letter are a group. */
const members = (ids: readonly string[]) => ids.map((id) => ({ id, group: id.slice(0, 1) }));

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
async function play(
  actions: Readonly<Record<string, readonly number[]>>,
  schedule: Schedule,
  latency: () => number = () => 0,
): Promise<{ log: string[]; stops: Record<string, string>; figures: BatchFigures }> {
  const policy = recording(actions);
  const stops: Record<string, string> = {};
  const seen: BatchFigures[] = [];
  const batcher = new Batcher(policy, members(Object.keys(actions)), { ...schedule, observe: (f) => seen.push(f) });
  const idle = async () => {
    for (let turns = latency(); turns > 0; turns--) await nextTurn();
  };
  const episodes = Object.entries(actions).map(async ([id, lengths]) => {
    await batcher.begun(id);
    let answer: TokenAnswer | undefined;
    for (const length of lengths) {
      await idle();
      answer = await batcher.ask(request(id));
      if ('halt' in answer) break;
      expect(answer).toEqual(reply(length));
    }
    await idle();
    stops[id] = answer !== undefined && 'halt' in answer ? answer.halt : 'final';
    batcher.end(id, stops[id] === 'final');
  });
  await Promise.all([batcher.run(), ...episodes]);
  return { log: policy.log, stops, figures: seen[0]! };
}

const simulate = async (...args: Parameters<typeof play>) => (await play(...args)).log;

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

it('an episode that lives for more ticks than the deadline is stopped, in the midst of an action or as it asks', async () => {
  const actions = { a: [9], b: [2, 2], c: [1, 1, 1, 1, 1, 1], d: [3] };
  const { stops, log } = await play(actions, { live: 9, deadline: 4 });
  expect(stops).toEqual({ a: 'deadline', b: 'final', c: 'deadline', d: 'final' });
  // Its row is given up at once, and freed as one that has ended.
  expect(log.filter((line) => line.startsWith('-')).join('')).toContain('-a');
  for (let shuffle = 0; shuffle < 8; shuffle++) {
    const latency = generator(`deadline/${shuffle}`);
    const again = await play(actions, { live: 9, deadline: 4 }, () => Math.floor(latency() * 6));
    expect([again.stops, again.log]).toEqual([stops, log]);
  }
});

it('the ticks of an episode are counted from its own beginning, not from that of the queue', async () => {
  const { stops } = await play({ a: [4], b: [4], c: [4] }, { live: 1, deadline: 5 });
  expect(stops).toEqual({ a: 'final', b: 'final', c: 'final' });
});

it('the first of a group to finish are enough: its others are stopped, live or queued, and other groups are not', async () => {
  const actions = { a1: [2], a2: [50], a3: [2], a4: [30, 30], a5: [1], b1: [60], b2: [1] };
  const { stops, figures } = await play(actions, { live: 4, enough: 2 });
  // In the queue of four, a1 and a3 have finished before a5 begins.
  expect(stops).toMatchObject({ a1: 'final', a2: 'straggler', a3: 'final', a4: 'straggler', b1: 'final', b2: 'final' });
  expect(stops.a5).toBe('straggler');
  expect(figures.ticks).toBeLessThan(65);
  for (let shuffle = 0; shuffle < 8; shuffle++) {
    const latency = generator(`enough/${shuffle}`);
    const again = await play(actions, { live: 4, enough: 2 }, () => Math.floor(latency() * 6));
    expect([again.stops, again.figures]).toEqual([stops, figures]);
  }
});

it('one that is not usable does not count among those that are enough', async () => {
  const policy = recording({});
  const batcher = new Batcher(policy, members(['a1', 'a2', 'a3']), { live: 9, enough: 1 });
  const running = batcher.run();
  const [, second, third] = ['a1', 'a2', 'a3'].map((id) => batcher.ask(request(id)));
  batcher.end('a1', false);
  expect([await second, await third]).toEqual([reply(1), reply(1)]);
  batcher.end('a2', true);
  expect(await batcher.ask(request('a3'))).toMatchObject({ halt: 'straggler' });
  batcher.end('a3', false);
  await running;
});

it('in throughput mode who is ready joins at once, whoever owes a request, and the clock ends who lives too long', async () => {
  const policy = recording({ a: [2, 2], b: [9] });
  let time = 0;
  const schedule = { live: 9, throughput: { deadlineMs: 100 }, now: () => time };
  const batcher = new Batcher(policy, members(['a', 'b', 'slow']), schedule);
  const running = batcher.run();
  // Nobody waits for `slow`, which never asks before it is too late.
  const b = batcher.ask(request('b'));
  expect(await batcher.ask(request('a'))).toEqual(reply(2));
  expect(await batcher.ask(request('a'))).toEqual(reply(2));
  time = 100;
  expect(await b).toMatchObject({ halt: 'late', detail: 'it was live for 0.1 s' });
  expect(await batcher.ask(request('slow'))).toMatchObject({ halt: 'late' });
  for (const id of ['a', 'b', 'slow']) batcher.end(id, false);
  await running;
});

it('figures: ticks, rows in them, and how full the batch was', async () => {
  const { figures } = await play({ a: [4], b: [1], c: [1], d: [1] }, { live: 2 });
  expect(figures).toEqual({ ticks: 4, rowTicks: 7, fill: 7 / 8, ms: 0, waitingMs: 0, stragglingMs: 0 });
});

it('an episode whose worker dies while it waits, or while it is written to, leaves the batch to the others', async () => {
  const policy = recording({ a: [5], b: [3, 1], c: [1] });
  const batcher = new Batcher(policy, members(['a', 'b', 'c']), { live: 9 });
  const running = batcher.run();
  const [, b] = [batcher.ask(request('a')), batcher.ask(request('b')), batcher.ask(request('c'))];
  batcher.end('c', true);
  await nextTurn();
  batcher.end('a', true);
  expect(await b).toEqual(reply(3));
  expect(await batcher.ask(request('b'))).toEqual(reply(1));
  batcher.end('b', true);
  await running;
  expect(policy.log).toEqual(['-c', '+ab ab', '-a', 'b', 'b', '+b b', '-b']);
});

it('one that dies before it has begun is not waited for', async () => {
  const policy = recording({});
  const batcher = new Batcher(policy, members(['a', 'b', 'c']), { live: 1 });
  const running = batcher.run();
  expect([batcher.hasBegun('a'), batcher.hasBegun('b')]).toEqual([true, false]);
  batcher.end('b', true);
  await batcher.ask(request('a'));
  batcher.end('a', true);
  await batcher.begun('c');
  batcher.end('c', true);
  await running;
});

it('a policy that fails, or answers who has not asked, fails what it was writing and not what comes after', async () => {
  const policy = recording({});
  const good = policy.tick;
  const batcher = new Batcher(policy, members(['a', 'b']), { live: 9 });
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
  batcher.end('a', true);
  batcher.end('b', true);
  await running;
});

it('an id given twice is refused: its episodes could not be told apart', () => {
  expect(() => new Batcher(recording({}), members(['a', 'b', 'a']))).toThrow(
    'expected a different id for each request, found a twice',
  );
});

it('one that asks before it begins, twice at once, or after its end is refused, and the others are not kept waiting', async () => {
  const policy = recording({ a: [50] });
  const batcher = new Batcher(policy, members(['a', 'b', 'c']), { live: 2 });
  const running = batcher.run();
  const refused = { code: 'INTERNAL', message: expect.stringContaining('expected one question at a time') };
  await expect(batcher.ask(request('c'))).rejects.toMatchObject(refused);
  const a = batcher.ask(request('a'));
  await expect(batcher.ask(request('a'))).rejects.toMatchObject(refused);
  const b = batcher.ask(request('b'));
  await nextTurn();
  // In the midst of its action too.
  await expect(batcher.ask(request('a'))).rejects.toMatchObject(refused);
  expect(await b).toEqual(reply(1));
  batcher.end('b', true);
  await expect(batcher.ask(request('b'))).rejects.toMatchObject(refused);
  await batcher.begun('c');
  batcher.end('c', true);
  expect(await a).toEqual(reply(50));
  batcher.end('a', true);
  await running;
});

it.each([{ live: 2 }, { live: 2, throughput: {} }])(
  'a run that is abandoned ends, whoever lives, writes or is queued: %o',
  async (schedule) => {
    const policy = recording({ a: [99] });
    const batcher = new Batcher(policy, members(['a', 'b', 'c']), schedule);
    const running = batcher.run();
    const asked = [batcher.ask(request('a')), batcher.ask(request('b'))];
    await nextTurn();
    await nextTurn();
    batcher.abandon(new Error('no host'));
    expect((await Promise.allSettled(asked))[0]).toMatchObject({ reason: { message: 'no host' } });
    await batcher.begun('c');
    await expect(batcher.ask(request('c'))).rejects.toThrow('no host');
    await running;
    expect(policy.log.at(-1)).toBe('-abc');
  },
);

it.each([1, 3, 5, 500])(
  'case 24: shuffled latencies change nobody who is suspended, with %i live at once',
  async (live) => {
    const random = generator('carried');
    const actions = Object.fromEntries(
      [...'abcdefgh'].flatMap((group) =>
        [1, 2, 3].map((rollout) => [
          `${group}${rollout}`,
          Array.from({ length: 1 + Math.floor(random() * 5) }, () => 1 + Math.floor(random() ** 3 * 20)),
        ]),
      ),
    );
    const schedule = { live, budget: 12 };
    const { stops, log, figures } = await play(actions, schedule);
    expect(new Set(Object.values(stops))).toEqual(new Set(['final', 'suspended']));
    for (let shuffle = 0; shuffle < 8; shuffle++) {
      const latency = generator(`suspended/${shuffle}`);
      const again = await play(actions, schedule, () => Math.floor(latency() * 6));
      expect([again.stops, again.log, again.figures]).toEqual([stops, log, figures]);
    }
  },
);
