/** @module The same episodes from pools of several sizes and kinds, as text. */
import type { Isolation } from '../../src/env/environment.ts';
import { importEnvironment } from '../../src/env/load.ts';
import { RolloutPool } from '../../src/env/rollouts/pool.ts';
import type { PolicySpec } from '../../src/env/rollouts/rollouts.ts';
import { FakeTokenPolicy, requestsOf } from '../fixtures/rollouts.ts';

const DICE = new URL('../fixtures/dice/index.ts', import.meta.url).href;

/** Few episodes, more than there are workers: of a uniform policy in the workers and of a token policy outside them. */
export async function diceEpisodes(isolation: Isolation, workers: number): Promise<string> {
  const environment = await importEnvironment(DICE);
  const pool = await RolloutPool.start({ environment: DICE, options: {}, isolation, workers });
  const specs: readonly PolicySpec[] = [
    { kind: 'uniform' },
    { kind: 'tokens', policy: new FakeTokenPolicy(environment) },
  ];
  const texts: string[] = [];
  // Chunks of 16 at the least: enough of them that every worker has some.
  for (const spec of specs) texts.push(JSON.stringify(await pool.run(requestsOf(environment, 8, 20), spec)));
  await pool.close();
  return texts.join('\n');
}
