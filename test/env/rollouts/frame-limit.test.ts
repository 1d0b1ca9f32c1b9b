import { expect, test } from 'vitest';
import { importEnvironment } from '../../../src/env/load.ts';
import { RolloutPool } from '../../../src/env/rollouts/pool.ts';
import type { PolicySpec } from '../../../src/env/rollouts/rollouts.ts';
import { FakeTokenPolicy, requestsOf } from '../../fixtures/rollouts.ts';

const DICE = new URL('../../fixtures/dice/index.ts', import.meta.url).href;

async function poolAndForks(frameBytes: number) {
  const environment = await importEnvironment(DICE);
  const host = { frameBytes };
  const pool = await RolloutPool.start({ environment: DICE, options: {}, workers: 1, isolation: 'process', host });
  const requests = requestsOf(environment, 4);
  const parents = await pool.run(requests, { kind: 'scripted', script: 'endless' });
  const forks = requests.map((request, i) => ({ ...request, fork: { parent: parents[i]!, step: 2 } }));
  const tokens: PolicySpec = { kind: 'tokens', policy: new FakeTokenPolicy(environment) };
  return { pool, requests, forks, tokens };
}

test('more than a host reads at once is an error that says what to lower, and the host lives on', async () => {
  const { pool, requests, forks, tokens } = await poolAndForks(20_000);
  await expect(pool.run(forks, { kind: 'uniform' })).rejects.toMatchObject({
    code: 'FRAME_TOO_LONG',
    message: expect.stringMatching(/^expected at most 20000 bytes .*, found \d{5,}/),
    hint: expect.stringContaining('batch.groups'),
  });
  const [episode] = await pool.run(requests.slice(0, 1), { kind: 'uniform' });
  expect(episode!.steps.length).toBeGreaterThan(0);
  // Those that ask for their tokens go one by one.
  const asking = await pool.run(forks, tokens);
  expect(asking.map(({ stop }) => stop)).not.toContain('sandbox-failure');
  await pool.close();
}, 60_000);

test('one that alone is more than a host reads fails alone, and says so', async () => {
  const { pool, requests, forks, tokens } = await poolAndForks(4000);
  const [other, tooLong] = await pool.run([requests[0]!, forks[1]!], tokens);
  expect(tooLong).toMatchObject({
    stop: 'sandbox-failure',
    failure: 'died',
    stopDetail: expect.stringMatching(/^expected at most 4000 bytes .*, found \d{4,}/),
  });
  expect(other!.stop).not.toBe('sandbox-failure');
  expect(other!.steps.length).toBeGreaterThan(0);
  await pool.close();
}, 60_000);
