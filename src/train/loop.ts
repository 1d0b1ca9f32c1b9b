/** @module The learning loop, as it stands in the papers: roll out groups, judge, form advantages, step. */
import type { BatchFigures } from '../env/rollouts/schedule.ts';
import type { Task } from '../records/task.ts';
import type { Trajectory } from '../records/trajectory.ts';
import { groupAdvantages } from './advantages.ts';
import type { Agent } from './agent.ts';
import { packBatch } from './batch.ts';
import type { Rig } from './collect.ts';
import type { Config } from './config.ts';
import { type Carried, NOTHING_CARRIED, rollGroups } from './groups.ts';
import type { Learner } from './learner.ts';
import { type IterationMetrics, iterationMetrics } from './metrics.ts';
import { learningRate } from './schedule.ts';

export interface Iteration {
  readonly iteration: number;
  readonly trajectories: readonly Trajectory[];
  /** What it leaves to the next one. */
  readonly carried: Carried;
  /** Null where the policy acts in the workers. */
  readonly batch: BatchFigures | null;
  readonly metrics: IterationMetrics;
  /** When each part of it ended [ms], by `now`. */
  readonly marks: { readonly start: number; readonly collected: number; readonly end: number };
}

export interface LoopOptions {
  readonly config: Pick<Config, 'seed' | 'iterations' | 'algorithm' | 'batch' | 'group' | 'optimizer' | 'rollouts'>;
  readonly rig: Rig;
  readonly agent: Agent;
  readonly learner: Learner;
  readonly tasks: readonly Task[];
  /** The first iteration to do: iterations before it are in the learner's weights already. */
  readonly from: number;
  /** What the iterations before it have left. */
  readonly carried?: Carried;
  readonly now: () => number;
  readonly signal?: AbortSignal;
  /** Called after each iteration, in order, before the next begins. */
  readonly commit: (iteration: Iteration) => void | Promise<void>;
  /** Called with the batch that could not be learnt from, before the error goes on; the weights are still those before it. */
  readonly failed?: (trajectories: readonly Trajectory[]) => void | Promise<void>;
}

/**
 * One iteration: `batch.groups` tasks, `group.size` rollouts of each under the current weights, unless some are carried over
 * (see `groups.ts`); advantages against the group;
 * `algorithm.epochs` optimizer steps on the whole batch. What an iteration does follows from config, seed, its number, the weights
 * and what was carried over. Aborting leaves the learner as the last committed iteration left it.
 */
export async function reinforce({
  config,
  rig,
  agent,
  learner,
  tasks,
  from,
  carried = { ...NOTHING_CARRIED, drawn: from * config.batch.groups },
  now,
  signal,
  commit,
  failed,
}: LoopOptions): Promise<void> {
  const { algorithm, optimizer } = config;
  const denominator = algorithm.estimator === 'grpo' ? 'tokens' : 'episodes';
  const schedule = {
    peak: optimizer.learningRate,
    steps: config.iterations,
    warmup: optimizer.warmup,
    decay: optimizer.decay,
  };
  for (let iteration = from; iteration < config.iterations; iteration++) {
    signal?.throwIfAborted();
    const start = now();
    const policy = await agent.policy(learner.weights, learner.version, 'sampled');
    const rolled = await rollGroups({ rig, config, tasks, iteration, carried, policy, signal });
    const { trajectories, batch } = rolled;
    carried = rolled.carried;
    const kept = config.rollouts.budget === undefined ? undefined : carried;
    const collected = now();

    let metrics: IterationMetrics;
    try {
      const advantages = groupAdvantages(trajectories, algorithm);
      const packed = packBatch({ trajectories, advantages: advantages.byEpisode, denominator, ...agent.packing });
      const rate = learningRate(iteration, schedule);
      const update = await learner.reinforce(packed, rate, kept === undefined);
      metrics = iterationMetrics({
        iteration,
        trajectories,
        batch,
        carried: kept,
        advantages: advantages.statistics,
        update,
        rate,
      });
    } catch (error) {
      await failed?.(trajectories);
      throw error;
    }
    await commit({ iteration, trajectories, carried, batch, metrics, marks: { start, collected, end: now() } });
  }
}
