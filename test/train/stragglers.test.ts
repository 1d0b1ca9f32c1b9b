import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/io/config-file.ts';
import type { IterationMetrics } from '../../src/train/metrics.ts';
import { SILENT } from '../../src/train/reporter.ts';
import { train } from '../../src/train/run.ts';
import { configProblems } from './configs.ts';
import { freshFolder, linesOf, SMALL_TRANSFORMER, textOf, trainShipped } from './runs.ts';

const overrides = [...SMALL_TRANSFORMER, 'group.size=2', 'rollouts.extra=2', 'rollouts.live=5', 'rollouts.deadline=9'];

interface Line {
  readonly group: string;
  readonly stop: string;
  readonly usable: boolean;
  readonly return: number | null;
  readonly iteration: number;
  readonly segments: readonly { readonly actionMask: readonly number[] }[];
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

test('case 21: stragglers and episodes at their deadline are in the records and the metrics, none with a positive score', async () => {
  const { path } = await trainShipped('toy-lookup.yaml', overrides);
  const lines = linesOf<Line>(path, 'trajectories.jsonl');
  expect(lines).toHaveLength(3 * 3 * 4);
  const stopped = (stop: string) => lines.filter((line) => line.stop === stop);
  expect(stopped('straggler').length).toBeGreaterThan(0);
  expect(stopped('deadline').length).toBeGreaterThan(0);
  for (const { usable } of stopped('straggler')) expect(usable).toBe(false);
  const late = stopped('deadline').filter(({ usable }) => usable);
  expect(late.length).toBeGreaterThan(0);
  for (const line of late) expect(line.return).toBeLessThanOrEqual(0);
  // Nobody is stopped before enough of the group have ended that can be used.
  for (const { group } of stopped('straggler')) {
    const ended = lines.filter((line) => line.group === group && line.usable).length;
    expect(ended).toBeGreaterThanOrEqual(2);
  }
  const metrics = linesOf<IterationMetrics>(path, 'metrics.jsonl').filter(({ phase }) => phase === 'train');
  for (const [i, { stragglers, batch, stops }] of metrics.entries()) {
    expect(batch?.ticks).toBeGreaterThan(9);
    expect(batch?.fill).toBeGreaterThan(0.2);
    expect(stragglers?.stopped ?? 0).toBe(stops.straggler ?? 0);
    expect(metrics[i]!.episodes).toBe(12);
    if (stragglers === null) continue;
    const tokens = lines
      .filter(({ iteration }) => iteration === metrics[i]!.iteration)
      .map(({ stop, segments }) => ({
        stop,
        n: segments.flatMap((s) => s.actionMask).filter((bit) => bit === 1).length,
      }));
    const kept = tokens.filter(({ stop }) => stop !== 'straggler');
    expect(stragglers.meanTokensKept).toBeCloseTo(mean(kept.map(({ n }) => n)), 9);
    // Those that were stopped before they had sampled anything say nothing of how long they are.
    const begun = tokens.filter(({ stop, n }) => stop !== 'straggler' || n > 0);
    expect(stragglers.meanTokensBegun).toBeCloseTo(mean(begun.map(({ n }) => n)), 9);
  }
  const [timing] = linesOf<Record<string, number>>(path, 'timings.jsonl');
  for (const share of ['fill', 'waitingShare', 'stragglingShare']) {
    expect(timing?.[share]).toBeGreaterThanOrEqual(0);
    expect(timing?.[share]).toBeLessThanOrEqual(1);
  }
  expect(timing?.sampledTokensPerSecond).toBeGreaterThan(0);
}, 120_000);

test('a clock is refused where bytes are promised, and a batch where there is none', () => {
  expect(configProblems({ rollouts: { deadlineSeconds: 3 } })).toEqual([
    ['rollouts.deadlineSeconds', expect.stringContaining('expected it with mode throughput alone')],
  ]);
  expect(configProblems({ rollouts: { deadlineSeconds: 3, mode: 'throughput' } })).toBe(undefined);
  expect(configProblems({ policy: { kind: 'tabular' }, rollouts: { extra: 1, deadline: 9 } })).toEqual([
    ['rollouts.extra', expect.stringContaining('expected it with policy.kind transformer alone')],
    ['rollouts.deadline', expect.stringContaining('expected it with policy.kind transformer alone')],
  ]);
});

test('a run in throughput mode says that its bytes are not promised', async () => {
  const dir = freshFolder();
  const notes: string[] = [];
  const change = [...SMALL_TRANSFORMER, 'iterations=1', 'rollouts.mode=throughput', 'rollouts.live=4'];
  const { config } = loadConfig({ file: 'toy-lookup.yaml', overrides: [...change, `runs.dir=${dir}`], cwd: dir });
  const outcome = await train({ config, reporter: { ...SILENT, note: (text) => notes.push(text) } });
  expect(outcome.interrupted).toBe(false);
  expect(notes).toContainEqual(expect.stringContaining('the same seed gives other bytes'));
  expect(JSON.parse(textOf(join(dir, 'toy-lookup'), 'manifest.json')).mode).toBe('throughput');
  expect(linesOf<Line>(join(dir, 'toy-lookup'), 'trajectories.jsonl')).toHaveLength(9);
}, 60_000);
