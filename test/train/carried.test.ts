import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Trajectory } from '../../src/records/trajectory.ts';
import type { Rig } from '../../src/train/collect.ts';
import { configSchema } from '../../src/train/config.ts';
import { rollGroups } from '../../src/train/groups.ts';
import type { IterationMetrics } from '../../src/train/metrics.ts';
import { replayRun } from '../../src/train/replay-run.ts';
import { SILENT } from '../../src/train/reporter.ts';
import { configProblems, MINIMAL } from './configs.ts';
import { linesOf, resume, SMALL_TRANSFORMER, textOf, trainShipped, trainUntil } from './runs.ts';

const overrides = [
  ...SMALL_TRANSFORMER,
  'iterations=6',
  'batch.groups=4',
  'rollouts.budget=7',
  'rollouts.live=6',
  'checkpoint.keep=9',
];

const BUDGET = { rollouts: { budget: 9 } };

const last = (path: string) => {
  const folder = join(path, 'checkpoints');
  return join('checkpoints', readdirSync(folder).sort().at(-1) as string);
};

test('what is not done when the budget is spent goes on under the new weights, and its group is learnt from once it is complete', async () => {
  const { path } = await trainShipped('toy-lookup.yaml', overrides);
  const trajectories = linesOf<Trajectory>(path, 'trajectories.jsonl');
  const carried = trajectories.filter(({ learntIn }) => learntIn !== undefined);
  expect(carried.length).toBeGreaterThan(0);
  for (const { iteration, learntIn } of carried) expect(learntIn).toBeGreaterThan(iteration);
  // Whole groups, each in one iteration, each episode once.
  const groups = Map.groupBy(trajectories, ({ group }) => group);
  for (const group of groups.values()) {
    expect(group).toHaveLength(3);
    expect(new Set(group.map(({ learntIn, iteration }) => learntIn ?? iteration)).size).toBe(1);
  }
  expect(new Set(trajectories.map(({ id }) => id)).size).toBe(trajectories.length);
  expect(trajectories.map(({ stop }) => stop)).not.toContain('suspended');
  // Tokens keep the version that sampled them, in order, each with its logprob.
  const versions = carried.map(({ segments }) => segments[0]!.policyVersion.filter((version) => version !== null));
  expect(versions.some((all) => new Set(all).size > 1)).toBe(true);
  for (const all of versions) expect(all).toEqual([...all].sort((a, b) => a - b));
  for (const { segments } of carried) {
    const [{ actionMask, logprobs }] = segments as [(typeof segments)[number]];
    for (const [i, bit] of actionMask.entries()) expect(logprobs[i] !== null).toBe(bit === 1);
  }

  const metrics = linesOf<IterationMetrics>(path, 'metrics.jsonl').filter(({ phase }) => phase === 'train');
  const sum = (of: (one: IterationMetrics) => number) => metrics.reduce((total, one) => total + of(one), 0);
  expect(sum(({ carried }) => carried!.learnt)).toBe(carried.length);
  expect(sum(({ carried }) => carried!.staleTokens)).toBeGreaterThan(0);
  expect(metrics[0]!.update.steps[0]!.drift!.maxRatioDeviation).toBeLessThan(2e-5);
  expect(Math.max(...metrics.map(({ update }) => update.steps[0]!.drift!.maxRatioDeviation))).toBeGreaterThan(1e-4);
  // Each of them comes to the same again, from its own record.
  const replay = { read: (record: unknown) => record as Trajectory, isMeant: () => true, reporter: SILENT };
  const report = await replayRun({ run: path, ...replay, signal: new AbortController().signal });
  expect(report).toMatchObject({ replayed: trajectories.length, differences: [] });
  // None is lost: all that were begun are in the records or left in the checkpoint.
  const left = JSON.parse(textOf(path, join(last(path), 'carried.json')));
  expect(left.drawn).toBe(groups.size + new Set([...left.suspended, ...left.ended].map(({ group }) => group)).size);
}, 120_000);

test('case 23: interrupted with rollouts in the air and resumed, it comes to the same, to the bit, with other workers too', async () => {
  const { path: whole } = await trainShipped('toy-lookup.yaml', [...overrides, 'workers=1']);
  const { path, outcome } = await trainUntil('toy-lookup.yaml', [...overrides, 'workers=2'], 3);
  expect(outcome.interrupted).toBe(true);
  expect(JSON.parse(textOf(path, join(last(path), 'carried.json'))).suspended.length).toBeGreaterThan(0);
  await resume(path);
  for (const file of ['trajectories.jsonl', 'metrics.jsonl', join(last(whole), 'carried.json')]) {
    expect(textOf(path, file) === textOf(whole, file), file).toBe(true);
  }
  const weights = join(last(whole), 'model.safetensors');
  expect(textOf(path, weights) === textOf(whole, weights)).toBe(true);
}, 240_000);

test('an episode that was carried over, of a task that is none of the run’s, is told as what it is', async () => {
  const parent = { id: '0.1.2', group: '0.1', taskId: 'toy-lookup-gone', steps: [] } as unknown as Trajectory;
  const rolled = rollGroups({
    rig: {} as Rig,
    config: configSchema.parse({ ...MINIMAL, ...BUDGET }),
    tasks: [{ id: 'toy-lookup-0', prompt: '', public: null, held: null }],
    iteration: 1,
    carried: { drawn: 1, suspended: [parent], ended: [] },
    policy: { kind: 'uniform' },
  });
  await expect(rolled).rejects.toMatchObject({
    code: 'RECORD_BROKEN',
    message: expect.stringContaining('episode 0.1.2, which was carried over, found "toy-lookup-gone"'),
  });
});

test('a budget is refused where it would bias or has nothing to count', () => {
  const problems = (change: object) => configProblems({ ...BUDGET, ...change });
  expect(problems({})).toBe(undefined);
  expect(problems({ algorithm: { estimator: 'reinforce', scale: 'none' } })).toEqual([
    ['rollouts.budget', expect.stringContaining('expected it with estimator grpo alone')],
  ]);
  expect(problems({ rollouts: { budget: 9, extra: 2 } })).toEqual([
    ['rollouts.extra', expect.stringContaining('expected 0 with a budget')],
  ]);
  const anew = [expect.stringMatching(/^rollouts\.deadline/), expect.stringContaining('expected none with a budget')];
  expect(problems({ rollouts: { budget: 9, deadline: 30 } })).toEqual([anew]);
  expect(problems({ rollouts: { budget: 9, mode: 'throughput', deadlineSeconds: 3 } })).toEqual([anew]);
  expect(problems({ policy: { kind: 'tabular' } })).toEqual([
    ['rollouts.budget', expect.stringContaining('expected it with policy.kind transformer alone')],
  ]);
});
