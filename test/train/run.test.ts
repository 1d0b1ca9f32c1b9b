import { beforeAll, describe, expect, it } from 'vitest';
import type { Trajectory } from '../../src/records/trajectory.ts';
import type { Summary } from '../../src/train/summary.ts';
import { splitKey } from '../../src/train/task-set.ts';
import { linesOf, SMALL_TRANSFORMER, textOf, trainShipped } from './runs.ts';

describe('a run with a warm start', () => {
  let path: string;
  let summary: Summary;
  beforeAll(async () => {
    const run = await trainShipped('toy-lookup.yaml', SMALL_TRANSFORMER);
    if (run.outcome.interrupted) throw new Error('expected a run that came to its end');
    path = run.path;
    summary = run.outcome.summary;
  }, 120_000);

  it('evaluates every held-out task once, and none that it was trained on', () => {
    const trained = new Set(linesOf<Trajectory>(path, 'trajectories.jsonl').map((episode) => episode.taskId));
    for (const file of ['random.sampled', 'untrained.greedy', 'warm-start.sampled', 'trained.greedy']) {
      const ids = linesOf<Trajectory>(path, `evaluations/${file}.jsonl`).map((episode) => episode.taskId);
      expect(new Set(ids).size).toBe(20);
      expect(ids).toHaveLength(20);
      for (const id of ids) {
        expect(splitKey(id)).toBeLessThan(20 / 120);
        expect(trained.has(id)).toBe(false);
      }
    }
  });

  it('case 23: draws on from iteration to iteration: no task comes again before all have come', () => {
    const drawn = new Map(linesOf<Trajectory>(path, 'trajectories.jsonl').map(({ group, taskId }) => [group, taskId]));
    expect(drawn.size).toBe(3 * 3);
    expect(new Set(drawn.values()).size).toBe(drawn.size);
  });

  it('states the gain as trained less warm-started', () => {
    const row = (name: string) => summary.policies.find((policy) => policy.name === name)!;
    for (const mode of ['success', 'sampledSuccess'] as const) {
      expect(summary.gain[mode].mean).toBeCloseTo(row('trained')[mode].mean - row('warm-start')[mode].mean, 12);
    }
  });

  it('begins reinforcement with an optimizer that remembers nothing', () => {
    const { version, updates } = JSON.parse(textOf(path, 'checkpoints/000003/state.json')) as {
      version: number;
      updates: Record<string, number>;
    };
    expect(version).toBe(4 + 3);
    expect(new Set(Object.values(updates))).toEqual(new Set([3]));
  });
});
