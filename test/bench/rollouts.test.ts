import { expect, test } from 'vitest';
import { benchRollouts } from '../../src/bench/rollouts.ts';
import { TOY_LOOKUP } from '../fixtures/rollouts.ts';

/** Toy-lookup with a verifier that, sealed, scores the second task alone. */
function bench(episodes: number) {
  const notes: string[] = [];
  const done = benchRollouts({
    environment: TOY_LOOKUP,
    verifier: new URL('./fixtures/unsealed.ts', import.meta.url).href,
    options: { values: 99 },
    policies: [{ name: 'oracle', spec: { kind: 'scripted', script: 'oracle' } }],
    maxSteps: undefined,
    reset: 'context',
    isolations: ['thread'],
    workers: [1],
    episodes,
    rounds: 1,
    now: () => performance.now(),
    cpuMs: () => 0,
    signal: new AbortController().signal,
    note: (text) => notes.push(text),
  });
  return { done, notes };
}

test('a rate of episodes that all come to nothing is an error, one of some says how many', async () => {
  await expect(bench(1).done).rejects.toMatchObject({
    code: 'NO_USABLE_ROLLOUT',
    message: expect.stringContaining('the verifier threw: there is no process here'),
  });
  const { done, notes } = bench(3);
  expect((await done).results).toHaveLength(2);
  expect(notes).toEqual(['oracle', 'oracle (thread, 1 workers): 2 of 3 episodes failed or have no score']);
}, 60_000);
