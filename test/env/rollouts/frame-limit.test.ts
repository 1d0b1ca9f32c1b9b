import { expect, test } from 'vitest';
import { importEnvironment } from '../../../src/env/load.ts';
import { RolloutPool } from '../../../src/env/rollouts/pool.ts';
import type { PolicySpec } from '../../../src/env/rollouts/rollouts.ts';
import { FakeTokenPolicy, requestsOf } from '../../fixtures/rollouts.ts';

const DICE = new URL('../../fixtures/dice/index.ts', import.meta.url).href;

test('more than a host reads at once is an error that says what to lower, and the host lives on', async () => {
  const environment = await importEnvironment(DICE);
  const host = { frameBytes: 20_000 };
  const pool = await RolloutPool.start({ environment: DICE, options: {}, workers: 1, isolation: 'process', host });
  const requests = requestsOf(environment, 4);
  const parents = await pool.run(requests, { kind: 'scripted', script: 'endless' });
  const forks = requests.map((request, i) => ({ ...request, fork: { parent: parents[i]!, step: 2 } }));
  const specs: (() => PolicySpec)[] = [
    () => ({ kind: 'tokens', policy: new FakeTokenPolicy(environment) }),
    () => ({ kind: 'uniform' }),
  ];
  for (const spec of specs) {
    await expect(pool.run(forks, spec())).rejects.toMatchObject({
      code: 'FRAME_TOO_LONG',
      message: expect.stringMatching(/^expected at most 20000 bytes .*, found \d{5,}/),
      hint: expect.stringContaining('batch.groups'),
    });
    const [episode] = await pool.run(requests.slice(0, 1), spec());
    expect(episode!.steps.length).toBeGreaterThan(0);
  }
  await pool.close();
}, 60_000);
