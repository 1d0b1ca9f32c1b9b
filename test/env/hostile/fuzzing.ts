/** @module What must hold of any program whatever: it ends, with something that may be seen, and nobody else is touched. */
import { expect } from 'vitest';
import { RolloutPool } from '../../../src/env/rollouts/pool.ts';
import type { Episode } from '../../../src/records/trajectory.ts';
import { requestOf, requestsOf } from '../../fixtures/rollouts.ts';
import hostile from './environment.ts';
import { armedProgram, type FuzzOptions } from './programs.ts';

const MIXED = { kind: 'scripted', script: 'mixed' } as const;
const SEEN = /^(refused|error|timeout|out-of-memory|too-deep|too-much-output|crashed): |^error: /;
const BATCH = 50;

const bytes = (episodes: readonly Episode[]) => episodes.map((episode) => JSON.stringify(episode)).join('\n');

/** Runs `count` programs of a seed in batches, siblings among them; gives how often each ending came about. @throws where one of them got through */
export async function fuzz(seed: string, count: number, options: FuzzOptions): Promise<ReadonlyMap<string, number>> {
  const pool = await RolloutPool.start({
    environment: new URL('./environment.ts', import.meta.url).href,
    options: {},
    workers: 1,
    host: { graceMs: 150 },
  });
  const endings = new Map<string, number>();
  try {
    const siblings = requestsOf(hostile, 2);
    const calm = bytes(await pool.run(siblings, MIXED));
    for (let from = 0; from < count; from += BATCH) {
      const requests = Array.from({ length: Math.min(BATCH, count - from) }, (_, i) =>
        requestOf({
          id: `${seed}-${from + i}`,
          prompt: 'Fuzz.',
          public: { attack: { ...armedProgram(seed, from + i, options) } },
        }),
      );
      const [first, second] = siblings;
      const episodes = await pool.run([first!, ...requests, second!], MIXED);
      expect(bytes([episodes[0]!, episodes.at(-1)!]) === calm, `siblings of ${seed} from ${from}`).toBe(true);
      for (const [i, episode] of episodes.slice(1, -1).entries()) {
        const ending = endingOf(episode, `program ${from + i} of ${seed}`);
        endings.set(ending, (endings.get(ending) ?? 0) + 1);
      }
    }
  } finally {
    await pool.close();
  }
  return endings;
}

function endingOf(episode: Episode, which: string): string {
  if (episode.stop === 'sandbox-failure') return `sandbox-failure ${episode.failure}`;
  expect(episode.stop, which).toBe('final');
  const observation = episode.steps[0]?.calls[0]?.observation ?? '';
  expect(observation.length, which).toBeLessThanOrEqual(2000);
  const failure = SEEN.exec(observation)?.[0];
  if (failure !== undefined) return failure.slice(0, failure.indexOf(':'));
  if (observation.endsWith(']') && observation.includes('… [cut:')) return 'cut';
  expect(() => JSON.parse(observation), `${which}: ${observation}`).not.toThrow();
  return 'a result';
}
