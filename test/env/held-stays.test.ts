import { MessagePort } from 'node:worker_threads';
import { Piscina } from 'piscina';
import { afterEach, expect, test, vi } from 'vitest';
import { importEnvironment } from '../../src/env/load.ts';
import { RolloutPool } from '../../src/env/rollouts/pool.ts';
import { RolloutRunner } from '../../src/env/rollouts/rollout-runner.ts';
import { EPISODE_KEYS, episodeOf, type Trajectory } from '../../src/records/trajectory.ts';
import { FakeTokenPolicy, requestsOf } from '../fixtures/rollouts.ts';

const DICE = new URL('../fixtures/dice/index.ts', import.meta.url).href;
const HELD = 'expected "72"';

afterEach(() => {
  vi.restoreAllMocks();
});

/** Judged, with a verdict that quotes the held answer, as verifiers do. */
async function judged(): Promise<readonly Trajectory[]> {
  const environment = await importEnvironment(DICE);
  const runner = await RolloutRunner.create({ environment: DICE, options: {} });
  const episodes = await runner.run(requestsOf(environment, 2), { kind: 'scripted', script: 'endless' });
  await runner.close();
  const verdict = { score: 0, success: false, reasons: [HELD], details: { expected: '72' } };
  return episodes.map((episode) => {
    const rewards = episode.steps.map(() => 0);
    return { ...episode, terminated: false, truncated: true, usable: true, verdict, rewards, return: 0 };
  });
}

test.each(['thread', 'process'] as const)(
  'isolation %s: no worker is sent how a record was judged',
  async (isolation) => {
    const environment = await importEnvironment(DICE);
    const requests = requestsOf(environment, 2);
    const parents = await judged();
    const sent = vi.spyOn(Piscina.prototype, 'run');
    const told = vi.spyOn(MessagePort.prototype, 'postMessage');
    const pool = await RolloutPool.start({ environment: DICE, options: {}, reset: 'isolate', workers: 1, isolation });
    const replayed = await pool.run(requests, { kind: 'recorded', name: 'scripted:endless', episodes: parents });
    const forks = requests.map((request, i) => ({ ...request, fork: { parent: parents[i]!, step: 2 } }));
    await pool.run(forks, { kind: 'uniform' });
    await pool.run(forks, { kind: 'tokens', policy: new FakeTokenPolicy(environment) });
    await pool.close();

    expect(replayed).toEqual(parents.map(episodeOf));
    // Episodes that ask for their tokens come by a port of their own.
    const begun = told.mock.calls
      .flatMap(([said]) => (Array.isArray(said) ? said : []))
      .filter((one) => 'begin' in one);
    expect(begun).toHaveLength(2);
    const tasks = [...sent.mock.calls.map(([{ port, ...task }]) => task), begun].map((task) => JSON.stringify(task));
    // The parents were sent, and no more of them.
    expect(tasks.filter((task) => task.includes(parents[0]!.hash)).length).toBe(3);
    for (const task of tasks) expect(task).not.toMatch(/72\\*"|verdict|reasons|rewards/);
  },
  60_000,
);

test('an episode keeps all of its own members, in their order', async () => {
  for (const trajectory of await judged()) {
    const { terminated, truncated, usable, verdict, rewards, return: sum, ...episode } = trajectory;
    const forked = { ...episode, forkedFrom: { episode: 'a', step: 1, seed: 's' }, failure: 'hang' as const };
    expect(JSON.stringify(episodeOf({ ...trajectory, ...forked }))).toBe(JSON.stringify(forked));
    expect(Object.keys(forked).every((key) => EPISODE_KEYS.has(key))).toBe(true);
  }
});
