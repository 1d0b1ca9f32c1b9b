import { expect, it } from 'vitest';
import { heldOutNote, progressFigures, timingsOf } from '../../src/train/figures.ts';
import type { Iteration } from '../../src/train/loop.ts';
import type { IterationMetrics } from '../../src/train/metrics.ts';

const metrics = {
  episodes: 8,
  usable: 8,
  meanReturn: 0.5,
  successRate: 0.75,
  sampledTokens: 40,
  update: { steps: [{ entropy: 0.1 }] },
} as unknown as IterationMetrics;
const batch = { ticks: 5, rowTicks: 10, fill: 0.25, ms: 200, waitingMs: 50, stragglingMs: 20 };
const made = (more: Partial<Iteration>): Iteration => ({
  iteration: 0,
  trajectories: Array(8),
  carried: { drawn: 0, suspended: [], ended: [] },
  batch,
  metrics,
  marks: { start: 1000, collected: 3000, learning: 3000, end: 3500 },
  ...more,
});

it('times an iteration, and the parts of its batch', () => {
  const timings = timingsOf(made({}));
  expect(timings).toEqual({
    rolloutSeconds: 2,
    updateSeconds: 0.5,
    rolloutsPerSecond: 4,
    sampledTokensPerSecond: 20,
    fill: 0.25,
    waitingShare: 0.25,
    stragglingShare: 0.1,
  });
  const beside = (next: { start: number; collected: number }) =>
    timingsOf(made({ marks: { start: 0, collected: 900, learning: 3000, end: 3500, next } }));
  expect(beside({ start: 3010, collected: 3300 })).toMatchObject({ rolloutSeconds: 0.9, overlapSeconds: 0.29 });
  expect(beside({ start: 3010, collected: 9000 })).toMatchObject({ updateSeconds: 0.5, overlapSeconds: 0.49 });
  expect(Object.keys(timingsOf(made({ batch: null })))).not.toContain('fill');
  expect(progressFigures(metrics, timings)).toEqual({
    reward: 0.5,
    success: 0.75,
    entropy: 0.1,
    'rollouts/s': 4,
    'tokens/s': 20,
    fill: 0.25,
    straggling: 0.1,
  });
});

it('takes a batch in which nothing was written for one of no fill, not of 0', () => {
  const timings = timingsOf(made({ batch: { ...batch, ticks: 0, rowTicks: 0, fill: null } }));
  expect(timings.fill).toBeNull();
  expect(progressFigures(metrics, timings).fill).toBeNaN();
});

it('says how many episodes the means are over where not all are usable', () => {
  expect(progressFigures({ ...metrics, usable: 3 }, timingsOf(made({})))).toMatchObject({ usable: '3/8', reward: 0.5 });
});

it('says of how many held-out tasks nothing is known', () => {
  const interval = { mean: 0.5, low: 0, high: 1 };
  const row = { name: 'trained', tasks: 20, success: interval, sampledSuccess: interval, return: interval } as const;
  const note = (unusable: number, sampledUnusable: number) =>
    heldOutNote(4, { ...row, steps: interval, unusable, sampledUnusable });
  expect(note(0, 0)).toBe('held-out after iteration 4: success 0.500 greedy, 0.500 sampled');
  expect(note(18, 0)).toBe('held-out after iteration 4: success 0.500 (unusable: 18 of 20) greedy, 0.500 sampled');
});
