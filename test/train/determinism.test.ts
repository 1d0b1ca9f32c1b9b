import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { linesOf, SMALL_TABULAR, SMALL_TRANSFORMER, textOf, trainShipped } from './runs.ts';

const BYTE_FOR_BYTE = [
  'trajectories.jsonl',
  'metrics.jsonl',
  'evaluations/trained.json',
  'evaluations/random.sampled.jsonl',
];

describe.each([
  ['a tabular run', 'toy-lookup-tabular.yaml', SMALL_TABULAR],
  ['a transformer run with warm start', 'toy-lookup.yaml', SMALL_TRANSFORMER],
])('case 24: %s', (_, config, overrides) => {
  test('gives the same bytes with 1, 2 and 4 workers', async () => {
    const paths: string[] = [];
    for (const workers of [1, 2, 4])
      paths.push((await trainShipped(config, [...overrides, `workers=${workers}`])).path);
    const [one, two, four] = paths;
    for (const file of BYTE_FOR_BYTE) {
      expect(textOf(one as string, file).length).toBeGreaterThan(100);
      // Not `toBe`: a difference of megabytes helps nobody.
      expect(textOf(two as string, file) === textOf(one as string, file), file).toBe(true);
      expect(textOf(four as string, file) === textOf(one as string, file), file).toBe(true);
    }
    const weights = (path: string) => {
      const last = readdirSync(join(path, 'checkpoints')).sort().at(-1) as string;
      return readFileSync(join(path, 'checkpoints', last, 'model.safetensors'));
    };
    expect(weights(two as string).equals(weights(one as string))).toBe(true);
    expect(weights(four as string).equals(weights(one as string))).toBe(true);
  }, 120_000);

  test('gives other bytes with another seed', async () => {
    const { path: a } = await trainShipped(config, overrides);
    const { path: b } = await trainShipped(config, [...overrides, 'seed=1']);
    expect(textOf(a, 'trajectories.jsonl') === textOf(b, 'trajectories.jsonl')).toBe(false);
  }, 120_000);

  test('case 14: cut into micro-batches, it samples the same tokens and takes the same step but for rounding', async () => {
    const { path: whole } = await trainShipped(config, [...overrides, 'iterations=1']);
    const { path: parts } = await trainShipped(config, [...overrides, 'iterations=1', 'batch.microTokens=64']);
    const ids = (path: string) =>
      linesOf<{ segments: { ids: number[] }[] }>(path, 'trajectories.jsonl').map((t) => t.segments.map((s) => s.ids));
    expect(ids(parts)).toEqual(ids(whole));
    const update = (path: string) =>
      linesOf<{ phase: string; update: { microBatches: number; steps: { loss: number }[] } }>(path, 'metrics.jsonl').at(
        -1,
      )!.update;
    expect(update(parts).microBatches).toBeGreaterThan(update(whole).microBatches);
    expect(update(parts).steps[0]!.loss).toBeCloseTo(update(whole).steps[0]!.loss, 5);
  }, 120_000);
});

test('metrics and trajectories hold no clock, and every line is a whole record', async () => {
  const { path } = await trainShipped('toy-lookup-tabular.yaml', SMALL_TABULAR);
  expect(existsSync(join(path, 'timings.jsonl'))).toBe(true);
  const metrics = linesOf<Record<string, unknown>>(path, 'metrics.jsonl');
  expect(metrics.map((m) => m.iteration)).toEqual([0, 1, 2, 3]);
  expect(JSON.stringify(metrics)).not.toMatch(/seconds|millis|"time|"date/i);
  const episodes = linesOf<{
    format: string;
    rewards: number[];
    steps: unknown[];
    segments: { ids: unknown[]; actionMask: unknown[]; logprobs: unknown[] }[];
  }>(path, 'trajectories.jsonl');
  expect(episodes).toHaveLength(4 * 4 * 8);
  for (const episode of episodes) {
    expect(episode.format).toBe('isogym.trajectory/3');
    expect(episode.rewards).toHaveLength(episode.steps.length);
    for (const { ids, actionMask, logprobs } of episode.segments) {
      expect(actionMask).toHaveLength(ids.length);
      expect(logprobs).toHaveLength(ids.length);
    }
  }
});

test('no episode or metric holds what is held: the expected answer never travels', async () => {
  const { path } = await trainShipped('toy-lookup-tabular.yaml', SMALL_TABULAR);
  for (const line of linesOf<Record<string, unknown>>(path, 'trajectories.jsonl'))
    expect(line).not.toHaveProperty('held');
});
