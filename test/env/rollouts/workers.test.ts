import type { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, it } from 'vitest';
import { importEnvironment } from '../../../src/env/load.ts';
import { RolloutPool } from '../../../src/env/rollouts/pool.ts';
import type { PolicySpec } from '../../../src/env/rollouts/rollouts.ts';
import { FakeTokenPolicy, requestsOf, TOY_LOOKUP } from '../../fixtures/rollouts.ts';

/** The threads that are started from now on. */
const workers: Worker[] = [];
let begun: (worker: Worker) => void = () => {};
const remember = (worker: Worker) => {
  workers.push(worker);
  begun(worker);
};
process.on('worker', remember);
afterEach(() => {
  begun = () => {};
  workers.length = 0;
});

const WAYS: readonly [string, (worker: Worker) => void, string][] = [
  ['fails as it starts', (worker) => worker.emit('error', new Error('no thread left')), 'no thread left'],
  ['ends as it starts', (worker) => void worker.terminate(), 'it ended as it started'],
];

describe.each(['thread', 'process'] as const)('isolation %s, a worker that dies and whose successor', (isolation) => {
  const start = (count: number) =>
    RolloutPool.start({ environment: TOY_LOOKUP, options: {}, workers: count, isolation });

  it.each(WAYS)(
    '%s ends the run with an error, and what comes after it',
    async (_, fails, why) => {
      const environment = await importEnvironment(TOY_LOOKUP);
      const requests = requestsOf(environment, 200, 4);
      const policies = (): PolicySpec[] => [
        { kind: 'uniform' },
        { kind: 'tokens', policy: new FakeTokenPolicy(environment) },
      ];
      for (const policy of policies()) {
        workers.length = 0;
        const pool = await start(policy.kind === 'uniform' ? 1 : 2);
        begun = (worker) => void process.nextTick(fails, worker);
        const running = pool.run(requests, policy);
        const lost = {
          code: 'WORKERS_LOST',
          message: `expected another rollout worker in place of one that died, found that none can be started: ${why}`,
          hint: expect.any(String),
        };
        const refused = expect(running).rejects.toMatchObject(lost);
        setImmediate(() => void workers[0]?.terminate());
        await refused;
        await expect(pool.run(requests, policy)).rejects.toMatchObject(lost);
        await pool.close();
        begun = () => {};
      }
    },
    30_000,
  );

  it.each(WAYS)(
    '%s leaves a pool that can be closed',
    async (_, fails) => {
      const pool = await start(2);
      begun = (worker) => void process.nextTick(fails, worker);
      await workers[0]?.terminate();
      await pool.close();
    },
    30_000,
  );
});

it('a worker that dies between two runs is replaced', async () => {
  const environment = await importEnvironment(TOY_LOOKUP);
  const requests = requestsOf(environment, 40);
  const pool = await RolloutPool.start({ environment: TOY_LOOKUP, options: {}, workers: 2, isolation: 'thread' });
  const before = await pool.run(requests, { kind: 'uniform' });
  workers[0]?.emit('error', new Error('a stray one'));
  await workers[1]?.terminate();
  expect(await pool.run(requests, { kind: 'uniform' })).toEqual(before);
  expect(workers).toHaveLength(4);
  await pool.close();
}, 30_000);
