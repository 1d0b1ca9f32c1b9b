import { join } from 'node:path';
import { expect, test } from 'vitest';
import { behaviourOf } from '../../src/exercises/step-penalty/behaviour.ts';
import type { Trajectory } from '../../src/records/trajectory.ts';
import type { PolicyName } from '../../src/train/evaluate.ts';
import type { TrainOutcome } from '../../src/train/run.ts';
import { linesOf, trainShipped } from './runs.ts';

function rowOf(outcome: TrainOutcome, name: PolicyName) {
  if (outcome.interrupted) throw new Error('expected a run that came to its end');
  return outcome.summary.policies.find((row) => row.name === name)!;
}

test.each([0, 1, 2])(
  'tabular REINFORCE from scratch learns the full path and nothing longer, seed %i',
  async (seed) => {
    const { path, outcome } = await trainShipped('toy-lookup-tabular.yaml', [`seed=${seed}`, 'evaluation.tasks=200']);
    const [untrained, trained] = [rowOf(outcome, 'untrained'), rowOf(outcome, 'trained')];
    expect(untrained.sampledSuccess.mean).toBeLessThan(0.1);
    expect(trained.success.mean).toBe(1);
    expect(trained.sampledSuccess.low).toBeGreaterThan(0.9);
    expect(trained.return.mean).toBeCloseTo(0.8, 6);
    const episodes = linesOf<Trajectory>(path, join('evaluations', 'trained.greedy.jsonl'));
    for (const episode of episodes) {
      expect(behaviourOf(episode)).toBe('full path');
      expect(episode.steps).toHaveLength(4);
    }
  },
  120_000,
);

test('the transformer learns by GRPO what its warm start did not teach', async () => {
  const { outcome } = await trainShipped('toy-lookup.yaml', [
    'environment.options.values=9',
    'tasks.train=3000',
    'tasks.heldOut=100',
    'evaluation.tasks=100',
    'warmStart.steps=200',
    'warmStart.episodes=48',
    'warmStart.demonstrations=6000',
    'iterations=24',
    'batch.groups=12',
  ]);
  expect(rowOf(outcome, 'untrained').success.mean).toBeLessThan(0.1);
  expect(rowOf(outcome, 'warm-start').success.mean).toBeLessThanOrEqual(0.3);
  expect(rowOf(outcome, 'trained').success.mean).toBeGreaterThanOrEqual(0.9);
  if (outcome.interrupted) throw new Error('interrupted');
  const { gain } = outcome.summary;
  expect(gain.over).toBe('warm-start');
  expect(gain.success.low).toBeGreaterThan(0.5);
  expect(gain.sampledSuccess.low).toBeGreaterThan(0.2);
}, 240_000);
