import { afterAll, beforeAll, expect, it } from 'vitest';
import { Inside } from '../../../src/env/inside.ts';
import { importEnvironment } from '../../../src/env/load.ts';
import { RolloutRunner } from '../../../src/env/rollouts/rollout-runner.ts';
import type { InsideSpec, RolloutRequest } from '../../../src/env/rollouts/rollouts.ts';
import { SteppedEpisodes, type SteppedHost } from '../../../src/env/rollouts/stepped-episodes.ts';
import type { Realm } from '../../../src/env/sandbox/realm.ts';
import { WorldFailure } from '../../../src/env/sandbox/world-host.ts';
import { failedEpisode } from '../../../src/env/transcript.ts';
import type { Policy, PolicyReply } from '../../../src/policy/policy.ts';
import type { Episode } from '../../../src/records/trajectory.ts';
import { requestOf } from '../../fixtures/rollouts.ts';
import { hostOf, world } from '../sandbox/programs.ts';

const CROWD = new URL('../../fixtures/crowd/index.ts', import.meta.url).href;
const LEAKY = new URL('../../fixtures/leaky/index.ts', import.meta.url).href;
const play: InsideSpec = { kind: 'scripted', script: 'play' };

const PEACEFUL = [
  ['count'],
  ['count', 'flaky', 'count', 'count'],
  [],
  ['fail', 'count'],
  ['flaky', 'flaky', 'flaky', 'flaky', 'flaky', 'flaky', 'flaky'],
  ['dive', 'count'],
  ['count', 'shout', 'count'],
  ['unknown', 'count'],
  Array.from({ length: 30 }, () => 'count'),
];
const ATTACKS = [
  ['count', 'eat', 'count'],
  ['count', 'count', 'loop', 'count'],
];

const requestsOf = (plans: readonly (readonly string[])[], more: object = {}): readonly RolloutRequest[] =>
  plans.map((plan, i) => requestOf({ id: `crowd-${i}`, prompt: 'Go.', public: { plan, ...more } }, i));

let runner: RolloutRunner;
beforeAll(async () => {
  runner = await RolloutRunner.create({ environment: CROWD, options: {} });
});
afterAll(() => runner.close());

async function eachAlone(requests: readonly RolloutRequest[]): Promise<readonly Episode[]> {
  const episodes: Episode[] = [];
  for (const request of requests) episodes.push(...(await runner.act([request], play)));
  return episodes;
}

it('episodes that live together come to what each comes to alone, those after one another in a place included', async () => {
  const requests = requestsOf(Array.from({ length: 10 }, () => PEACEFUL).flat());
  const together = await runner.act(requests, play);
  expect(together).toEqual(await eachAlone(requests));
  expect(together.map(({ id }) => id)).toEqual(requests.map(({ id }) => id));
  expect(new Set(together.map(({ stop }) => stop))).toEqual(new Set(['final', 'max-steps']));
});

it('cases 19 and 24: one that uses up the memory or runs late among them costs its own episode alone', async () => {
  const plans = [...PEACEFUL, ATTACKS[0] as string[], ...PEACEFUL, ATTACKS[1] as string[], ...PEACEFUL, ...PEACEFUL];
  const requests = requestsOf(plans);
  const together = await runner.act(requests, play);
  expect(together).toEqual(await eachAlone(requests));
  expect(together[9]).toMatchObject({ stop: 'sandbox-failure', failure: 'out-of-memory' });
  expect(together[9 + 1 + 9]).toMatchObject({ stop: 'final', final: 'after 4' });
  expect(together[9 + 1 + 9]?.steps.map(({ calls }) => calls[0]?.error)).toEqual([
    undefined,
    undefined,
    'timeout',
    'skipped',
    undefined,
  ]);
});

it.each([
  ['worlds that hold 3 MiB each', { holds: 3 * 2 ** 20 }, ['count', 'count']],
  ['worlds of which each comes to hold 12 MiB', {}, ['count', 'hold', 'count', 'hold']],
])('case 24: %s find the memory that each finds alone, though all of them together do not', async (_, more, plan) => {
  const small = await RolloutRunner.create({ environment: CROWD, options: {} });
  const requests = requestsOf(
    Array.from({ length: 64 }, () => plan),
    more,
  );
  const together = await small.act(requests, play);
  await small.close();
  expect(together.map(({ stop }) => stop)).toEqual(requests.map(() => 'final'));
  expect(together).toEqual(await eachAlone(requests));
});

it('where an entry is lost and nobody was to blame, fewer live together in the next run, until none is', async () => {
  const inside = new Inside(await importEnvironment(CROWD), {});
  const requests = requestsOf(Array.from({ length: 64 }, () => ['count']));
  let sizes: number[] = [];
  const host: SteppedHost = {
    take: () => ({}) as Realm,
    opening: (realm, a, b) => ({ realm, operation: 'open', a, b, timeoutMs: 1 }),
    runAll(operations) {
      sizes.push(operations.length);
      return operations.map(() => (operations.length > 4 ? undefined : { status: 'ok', text: 'done' }));
    },
    failureOf: () => new WorldFailure(undefined, 'not asked for'),
    give: () => {},
    forget: () => {},
  };
  const alone: string[] = [];
  const stepped = new SteppedEpisodes(inside, host, async (request) => {
    alone.push(request.id);
    return failedEpisode(request, 'scripted:play', 'environment-failure', 'alone');
  });
  const runs: { largest: number; alone: number; ids: readonly string[] }[] = [];
  for (let run = 0; run < 3; run++) {
    sizes = [];
    alone.length = 0;
    const ids: string[] = [];
    await stepped.run(requests, inside.policy(play, requests), undefined, ({ id }) => ids.push(id));
    runs.push({ largest: Math.max(...sizes), alone: alone.length, ids });
  }
  const ids = requests.map(({ id }) => id);
  expect(runs).toEqual([
    { largest: 16, alone: 64, ids },
    { largest: 8, alone: 64, ids },
    { largest: 4, alone: 0, ids },
  ]);
});

it('a reply that comes late is awaited, whoever made its promise', async () => {
  const inside = new Inside(await importEnvironment(CROWD), {});
  const requests = requestsOf(PEACEFUL);
  const host: SteppedHost = {
    take: () => ({}) as Realm,
    opening: (realm, a, b) => ({ realm, operation: 'open', a, b, timeoutMs: 1 }),
    runAll: (operations) => operations.map(() => ({ status: 'ok', text: 'done' })),
    failureOf: () => new WorldFailure(undefined, 'not asked for'),
    give: () => {},
    forget: () => {},
  };
  const stepped = new SteppedEpisodes(inside, host, () => Promise.reject(new Error('not asked for')));
  const policy = inside.policy(play, requests);
  const later: Policy = {
    ...policy,
    request(context) {
      const reply = Promise.resolve(policy.request(context));
      // biome-ignore lint/suspicious/noThenProperty: the promise of another realm or library
      return { then: reply.then.bind(reply) } as Promise<PolicyReply>;
    },
  };
  const [atOnce, late]: [Episode[], Episode[]] = [[], []];
  await stepped.run(requests, policy, undefined, (episode) => atOnce.push(episode));
  await stepped.run(requests, later, undefined, (episode) => late.push(episode));
  expect(late).toEqual(atOnce);
  expect(late.some(({ stop }) => stop === 'final')).toBe(true);
});

it('worlds that do not open are failures of their own', async () => {
  const requests = [...requestsOf(PEACEFUL), ...requestsOf(PEACEFUL.slice(0, 2), { broken: true })];
  const together = await runner.act(requests, play);
  expect(together).toEqual(await eachAlone(requests));
  expect(together.at(-1)).toMatchObject({
    stop: 'environment-failure',
    stopDetail: "The world's create() threw: this world does not open",
  });
});

it('ends those that live when the run is cancelled, and begins no other', async () => {
  let looks = 0;
  const signal = {
    get aborted() {
      return ++looks > 60;
    },
  };
  const stops = (await runner.act(requestsOf(Array.from({ length: 50 }, () => ['count', 'count'])), play, signal)).map(
    ({ stop, stopDetail }) => `${stop} ${stopDetail}`,
  );
  expect(stops).toContain('final undefined');
  expect(stops).toContain('cancelled undefined');
  expect(stops.at(-1)).toBe('cancelled it had not begun');
});

it('uses worlds again in a small run too, so that what one keeps is found where the reset level is tried', async () => {
  const leaky = await RolloutRunner.create({ environment: LEAKY, options: {} });
  const requests = Array.from({ length: 8 }, (_, i) =>
    requestOf({ id: `leaky-${i}`, prompt: 'Go.', public: { openly: true } }, i),
  );
  const episodes = await leaky.act(requests, { kind: 'scripted', script: 'oracle' });
  await leaky.close();
  expect(episodes.map(({ steps }) => steps[0]?.calls[0]?.observation).sort()).toEqual(
    [1, 2, 3, 4].flatMap((times) => [`leak ${times}`, `leak ${times}`]),
  );
});

it('one entry serves all worlds of an isolate', async () => {
  const host = hostOf(world({ say: "({ text }) => text + ' said'" }), 'state');
  try {
    const realms = Array.from({ length: 20 }, () => host.take());
    const opened = host.runAll(realms.map((realm, i) => host.opening(realm, '{}', `seed ${i}`)));
    expect(opened).toEqual(realms.map(() => ({ status: 'ok', text: '' })));
    const said = host.runAll(
      realms.map((realm, i) => ({
        realm,
        operation: 'call',
        a: i === 7 ? 'no' : 'say',
        b: JSON.stringify({ text: `"${i}\ud800` }),
        timeoutMs: 5000,
      })),
    );
    expect(said).toEqual(
      realms.map((_, i) =>
        i === 7
          ? { status: 'error', message: 'The world has no tool "no".', transient: false }
          : { status: 'ok', text: `"${i}\ud800 said` },
      ),
    );
    // A line that was given back is another realm's.
    for (const realm of realms) host.give(realm);
    const again = Array.from({ length: 3 }, () => host.take());
    expect(host.runAll(again.map((realm) => host.opening(realm, '{}', 's'))).map((o) => o?.status)).toEqual([
      'ok',
      'ok',
      'ok',
    ]);
  } finally {
    host.dispose();
  }
});
