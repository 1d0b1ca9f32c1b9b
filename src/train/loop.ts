/** @module The learning loop, as it stands in the papers: roll out groups, judge, form advantages, step. With `rollouts.staleness` the next groups are rolled out meanwhile. */
import * as tf from '@tensorflow/tfjs';
import type { BatchFigures } from '../env/rollouts/schedule.ts';
import type { Task } from '../records/task.ts';
import type { Trajectory } from '../records/trajectory.ts';
import { groupAdvantages } from './advantages.ts';
import type { Agent } from './agent.ts';
import { packBatch } from './batch.ts';
import type { Acting } from './checkpoint.ts';
import type { Rig } from './collect.ts';
import type { Config } from './config.ts';
import { onDevice } from './eager-steps.ts';
import { type Carried, NOTHING_CARRIED, type Rolled, rollGroups } from './groups.ts';
import type { Learner } from './learner.ts';
import { type IterationMetrics, iterationMetrics } from './metrics.ts';
import { learningRate } from './schedule.ts';

export interface Iteration {
  readonly iteration: number;
  readonly trajectories: readonly Trajectory[];
  /** What it leaves to the next one. */
  readonly carried: Carried;
  /** Whose weights roll out the next one; absent where they are the learner's. */
  readonly acting?: Acting | undefined;
  /** Null where the policy acts in the workers. */
  readonly batch: BatchFigures | null;
  readonly metrics: IterationMetrics;
  /** When each part of it began and ended [ms], by `now`. */
  readonly marks: {
    readonly start: number;
    readonly collected: number;
    readonly learning: number;
    readonly end: number;
    /** The rollouts of the next one, where they ran beside its update. */
    readonly next?: { readonly start: number; readonly collected: number } | undefined;
  };
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
  /** Whose weights roll out the first iteration. Default: the learner's. */
  readonly acting?: Acting;
  readonly now: () => number;
  readonly signal?: AbortSignal;
  /** Called after each iteration, in order, before the next one learns. */
  readonly commit: (iteration: Iteration) => void | Promise<void>;
  /** Called with the batch that could not be learnt from, before the error goes on; the weights are still those before it. */
  readonly failed?: (trajectories: readonly Trajectory[]) => void | Promise<void>;
}

/** The rollouts of an iteration, and the version of the weights that they were begun under. */
interface RolledOut extends Rolled {
  readonly version: number;
  readonly start: number;
  readonly collected: number;
}

/** What an iteration has learnt. */
interface Learnt {
  readonly metrics: IterationMetrics;
  readonly learning: number;
  readonly end: number;
}

/**
 * One iteration: `batch.groups` tasks, `group.size` rollouts of each under the current weights, unless some are carried over
 * (see `groups.ts`); advantages against the group; `algorithm.epochs` optimizer steps on the whole batch.
 *
 * With `rollouts.staleness` 1 the rollouts of the next iteration run beside these steps, under the weights before them: all but the first
 * iteration learn from rollouts of weights that are one update old. The ratio of GRPO makes up for that.
 *
 * What an iteration does follows from config, seed, its number, the weights and what was carried over. Aborting leaves the learner as
 * the last committed iteration left it.
 */
export async function reinforce(options: LoopOptions): Promise<void> {
  const { config, learner, from, signal, commit, failed } = options;
  let carried = options.carried ?? { ...NOTHING_CARRIED, drawn: from * config.batch.groups };
  let acting = options.acting;
  let ahead: RolledOut | undefined;
  for (let iteration = from; iteration < config.iterations; iteration++) {
    signal?.throwIfAborted();
    const rolled = ahead ?? (await rollOut(options, iteration, carried, acting, signal));
    carried = rolled.carried;
    acting =
      config.rollouts.staleness === 0 ? undefined : { weights: await learner.hostWeights(), version: learner.version };

    const { rollouts } = options.rig;
    const lost = rollouts.resetLost === true;
    const stop = new AbortController();
    const stopped = AbortSignal.any([stop.signal, ...(signal === undefined ? [] : [signal])]);
    const learning = learn(options, iteration, rolled);
    learning.catch((error) => stop.abort(error));
    const next =
      acting === undefined || iteration + 1 === config.iterations
        ? undefined
        : rollOut(options, iteration + 1, carried, acting, stopped);
    const [learnt, rolledNext] = await Promise.allSettled([learning, next]);
    // What rollouts ahead have found of the reset level is the next iteration's: a run resumed from here would not know it either.
    const lostAhead = rollouts.resetLost === true && !lost;
    if (lostAhead) rollouts.resetLost = false;
    if (learnt.status === 'rejected') {
      await failed?.(rolled.trajectories);
      throw learnt.reason;
    }
    ahead = rolledNext.status === 'fulfilled' ? rolledNext.value : undefined;
    const { start, collected, trajectories, batch } = rolled;
    const { metrics, ...marks } = learnt.value;
    await commit({
      ...{ iteration, trajectories, carried, acting, batch, metrics },
      marks: { start, collected, ...marks, next: ahead },
    });
    if (rolledNext.status === 'rejected') throw rolledNext.reason;
    if (lostAhead) rollouts.resetLost = true;
  }
}

/** @param acting default: the learner, which then has to keep its weights until it is done. */
async function rollOut(
  { rig, config, tasks, agent, learner, now }: LoopOptions,
  iteration: number,
  carried: Carried,
  acting: Acting | undefined,
  signal: AbortSignal | undefined,
): Promise<RolledOut> {
  const start = now();
  const own = acting && onDevice(acting.weights);
  const { version } = acting ?? learner;
  try {
    const policy = await agent.policy(own ?? learner.weights, version, 'sampled');
    const rolled = await rollGroups({ rig, config, tasks, iteration, carried, policy, signal });
    return { ...rolled, version, start, collected: now() };
  } finally {
    if (own !== undefined) tf.dispose(Object.values(own));
  }
}

async function learn(
  { config, agent, learner, now }: LoopOptions,
  iteration: number,
  { trajectories, carried, batch, version: sampledBy }: RolledOut,
): Promise<Learnt> {
  const learning = now();
  const { algorithm, optimizer } = config;
  const { version } = learner;
  const kept = config.rollouts.budget === undefined ? undefined : carried;
  const advantages = groupAdvantages(trajectories, algorithm);
  const denominator = algorithm.estimator === 'grpo' ? 'tokens' : 'episodes';
  const packed = packBatch({ trajectories, advantages: advantages.byEpisode, denominator, ...agent.packing });
  const rate = learningRate(iteration, {
    peak: optimizer.learningRate,
    steps: config.iterations,
    warmup: optimizer.warmup,
    decay: optimizer.decay,
  });
  const update = await learner.reinforce(packed, rate, kept === undefined && sampledBy === version);
  const metrics = iterationMetrics({
    ...{ iteration, trajectories, batch, carried: kept, version },
    ...{ advantages: advantages.statistics, update, rate },
  });
  return { metrics, learning, end: now() };
}
