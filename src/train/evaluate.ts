/** @module Evaluation: one rollout of every held-out task, outcome first, with intervals. */
import type { PolicySpec } from '../env/rollouts/rollouts.ts';
import { deriveSeed } from '../records/random.ts';
import { publicPart, type Task } from '../records/task.ts';
import type { Trajectory } from '../records/trajectory.ts';
import { collect, type Rig } from './collect.ts';
import { bootstrapMean, type Interval, wilson } from './statistics.ts';

/** `greedy`: the most probable token each time. `sampled`: as in training. */
export type EvaluationMode = 'greedy' | 'sampled';

/** The rows of the table at the end of a run. */
export type PolicyName = 'random' | 'untrained' | 'warm-start' | 'trained' | 'oracle';

/** What one pass over the held-out tasks gave. Unusable episodes (a failed worker, no score) are left out and counted. */
export interface Evaluation {
  readonly tasks: number;
  readonly unusable: number;
  /** Per usable task, in the tasks' order. */
  readonly outcomes: readonly {
    readonly taskId: string;
    readonly success: boolean;
    readonly return: number;
    readonly steps: number;
  }[];
}

/** 95 % intervals: Wilson for `success` and `sampledSuccess`, percentile bootstrap for `return` and `steps` (both greedy). */
export interface PolicyRow {
  readonly name: PolicyName;
  readonly tasks: number;
  /** Greedy episodes that could not be judged: left out of `success`, `return` and `steps`. */
  readonly unusable: number;
  /** Sampled ones: left out of `sampledSuccess`. */
  readonly sampledUnusable: number;
  readonly success: Interval;
  readonly sampledSuccess: Interval;
  readonly return: Interval;
  readonly steps: Interval;
}

/**
 * Every episode is waited for, whatever deadlines training has: what they end is not what the policy cannot do, and leaving out
 * the slow ones would flatter it. The environment's own limits hold.
 *
 * The seed of a task's episode depends on run seed, mode and task id and not on the policy: two policies meet the same
 * environment randomness, so their difference is taken task by task.
 */
export async function evaluate(
  rig: Rig,
  tasks: readonly Task[],
  policy: PolicySpec,
  mode: EvaluationMode,
  seed: string,
  signal?: AbortSignal,
): Promise<{ readonly evaluation: Evaluation; readonly trajectories: readonly Trajectory[] }> {
  const requests = tasks.map((task) => ({
    id: `${mode}.${task.id}`,
    group: `${mode}.${task.id}`,
    task: publicPart(task),
    iteration: 0,
    rollout: 0,
    seed: deriveSeed(seed, 'evaluation', mode, task.id),
  }));
  const trajectories = await collect({ ...rig, ...unhurried(rig) }, requests, tasks, policy, signal);
  const outcomes = trajectories.flatMap((t) =>
    t.usable && t.return !== null
      ? [{ taskId: t.taskId, success: t.verdict.success, return: t.return, steps: t.steps.length }]
      : [],
  );
  return { evaluation: { tasks: tasks.length, unusable: tasks.length - outcomes.length, outcomes }, trajectories };
}

function unhurried({ schedule }: Rig): Pick<Rig, 'schedule'> {
  if (schedule === undefined) return {};
  const { live, now } = schedule;
  return { schedule: now === undefined ? { live } : { live, now } };
}

export function policyRow(name: PolicyName, greedy: Evaluation, sampled: Evaluation, seed: string): PolicyRow {
  const successes = (e: Evaluation) => e.outcomes.filter((o) => o.success).length;
  const interval = (values: readonly number[], what: string) =>
    bootstrapMean(values, deriveSeed(seed, 'bootstrap', name, what));
  return {
    name,
    tasks: greedy.tasks,
    unusable: greedy.unusable,
    sampledUnusable: sampled.unusable,
    success: wilson(successes(greedy), greedy.outcomes.length),
    sampledSuccess: wilson(successes(sampled), sampled.outcomes.length),
    return: interval(
      greedy.outcomes.map((o) => o.return),
      'return',
    ),
    steps: interval(
      greedy.outcomes.map((o) => o.steps),
      'steps',
    ),
  };
}

/** Mean of the per-task difference in success, after − before, over the tasks that both could judge, with a 95 % paired bootstrap interval. */
export function pairedGain(before: Evaluation, after: Evaluation, seed: string): Interval {
  const earlier = new Map(before.outcomes.map((o) => [o.taskId, o.success]));
  const differences = after.outcomes.flatMap((o) => {
    const was = earlier.get(o.taskId);
    return was === undefined ? [] : [Number(o.success) - Number(was)];
  });
  return bootstrapMean(differences, deriveSeed(seed, 'bootstrap', 'gain'));
}
