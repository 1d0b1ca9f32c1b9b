/** @module Advantages: how much better an episode, or a step of it, was than its baseline. Grouped by id, never by position. */
import { IsogymError, inputError } from '../records/errors.ts';
import type { Trajectory } from '../records/trajectory.ts';
import { rewardsToGo } from './returns.ts';
import { mean, populationDeviation } from './statistics.ts';
import { usableOnly } from './usable.ts';

/**
 * - `estimator`: `grpo` values an episode by its return G₀ and gives all its steps that one advantage (outcome supervision,
 *   Shao et al. 2024, arXiv 2402.03300, §4.1.2); `reinforce` values each step by its own return-to-go Gₜ (Williams 1992).
 * - `baseline`, subtracted from the value: `group-mean`; `leave-one-out`, the mean of the others in the group, independent of
 *   the episode's own actions and so unbiased (RLOO: Kool et al. 2019; Ahmadian et al. 2024, arXiv 2402.14740);
 *   `batch-mean`, over all groups; `none`.
 * - `scale`: `group-std` divides by the group's deviation; `none` does not (Dr. GRPO: Liu et al. 2025, arXiv 2503.20783, which
 *   shows that the division favours tasks that are nearly always or nearly never solved).
 * - `gamma`: γ in [0, 1], per step.
 */
export interface AdvantageOptions {
  readonly estimator: 'grpo' | 'reinforce';
  readonly baseline: 'group-mean' | 'leave-one-out' | 'batch-mean' | 'none';
  readonly scale: 'group-std' | 'none';
  readonly gamma: number;
}

export interface AdvantageStatistics {
  /** Groups with at least one usable episode. */
  readonly groups: number;
  /** Of these, those of two or more whose returns are all equal: against a group's baseline they teach nothing. */
  readonly zeroVariance: number;
  /** Of these, those of one. */
  readonly singletons: number;
  /** Episodes left out. */
  readonly unusable: number;
}

export interface Advantages {
  /** By trajectory id, usable ones only: the advantage of each step [steps]. Under `grpo` they are all the same. */
  readonly byEpisode: ReadonlyMap<string, Float64Array>;
  readonly statistics: AdvantageStatistics;
}

/**
 * Returns that differ by no more than this share of the rewards' absolute sum are equal: what is left is the rounding of that
 * sum, at most (n − 1) 2⁻⁵³ Σ|r| for n rewards (Higham 2002, eq. 4.4), here with room for 4096 of them on both sides.
 * Without it two episodes that earned the same in another order get advantages of ±1.
 */
const TIE = 2 ** -40;

/** Differences up to this are equal too: squared they underflow, and the deviation would be 0. */
const UNDERFLOW = 2 ** -500;

/**
 * A = (value − baseline) / scale, over usable episodes only: an unusable one is in no mean, no deviation and no result.
 *
 * Values are compared like with like: under `reinforce` a step is compared with the steps of the same index. No baseline here
 * depends on the action that it is subtracted for (Williams 1992, Theorem 1), but for that action's own 1/n share of a mean.
 * Values that are all equal give exactly 0 against a group's or the batch's mean; so does a value that has no other to compare with.
 *
 * Bound: with `group-std` and G values |A| ≤ √(G − 1) < √G. As Σaⱼ = 0 and Σaⱼ² = G, by Cauchy–Schwarz
 * aᵢ² = (Σ_{j≠i} aⱼ)² ≤ (G − 1)(G − aᵢ²), so G aᵢ² ≤ G (G − 1).
 *
 * Deliberate deviations from GRPO as published: the deviation is that of the population (implementations use the sample's), which
 * gives the bound; no epsilon is added to it, as equal values are handled apart; the return carries the step penalties.
 *
 * @throws NO_USABLE_ROLLOUT where no episode is usable.
 * @throws BAD_ADVANTAGE where `group-std` is asked for with another baseline than `group-mean`: the bound would be lost.
 * @throws DUPLICATE_EPISODE
 */
export function groupAdvantages(trajectories: readonly Trajectory[], options: AdvantageOptions): Advantages {
  if (options.scale === 'group-std' && options.baseline !== 'group-mean') {
    throw inputError(
      'BAD_ADVANTAGE',
      `scale group-std: expected baseline group-mean, found ${options.baseline}; the advantage would have no bound`,
      'Set scale to none, or baseline to group-mean.',
    );
  }
  const usable = usableOnly(trajectories);
  const byEpisode = new Map<string, Float64Array>();
  const cells = new Map<string, Value[]>();
  const groups = new Map<string, Value[]>();
  for (const { id, group, rewards } of usable) {
    if (byEpisode.has(id))
      throw new IsogymError('DUPLICATE_EPISODE', `expected distinct episode ids, found ${id} twice`);
    const advantages = new Float64Array(rewards.length);
    byEpisode.set(id, advantages);
    const returns = rewardsToGo(rewards, options.gamma);
    const magnitude = rewards.reduce((sum, reward) => sum + Math.abs(reward), 0);
    const values = [...returns].map((value, step) => ({ id, value, magnitude, step, advantages }));
    const pool = options.baseline === 'batch-mean' ? '' : group;
    for (const value of options.estimator === 'grpo' ? values.slice(0, 1) : values) {
      append(cells, `${value.step} ${pool}`, value);
    }
    for (const value of values.slice(0, 1)) append(groups, group, value);
  }
  for (const cell of cells.values()) fill(cell, options);
  const shared = [...groups.values()];
  return {
    byEpisode,
    statistics: {
      groups: shared.length,
      zeroVariance: shared.filter((group) => group.length > 1 && tied(group)).length,
      singletons: shared.filter((group) => group.length === 1).length,
      unusable: trajectories.length - usable.length,
    },
  };
}

/** One value to be compared, and where its advantage goes. */
interface Value {
  readonly id: string;
  readonly value: number;
  /** Σ|r| of its episode: the scale of the rounding in `value`. */
  readonly magnitude: number;
  readonly step: number;
  readonly advantages: Float64Array;
}

/** Values that share a baseline. Sorted by episode, so that the order of the batch changes not even the rounding. */
function fill(cell: Value[], { estimator, baseline, scale }: AdvantageOptions): void {
  cell.sort((a, b) => (a.id < b.id ? -1 : 1));
  const n = cell.length;
  const values = cell.map((one) => one.value);
  const equal = tied(cell);
  const center = mean(values);
  const deviation = scale === 'group-std' ? populationDeviation(values) : 1;
  for (const { value, step, advantages } of cell) {
    let advantage = value;
    if (baseline !== 'none') {
      advantage = equal ? 0 : (value - center) / deviation;
      // xᵢ − (Σx − xᵢ)/(n − 1) = n/(n − 1) · (xᵢ − x̄)
      if (baseline === 'leave-one-out' && n > 1) advantage *= n / (n - 1);
    }
    if (estimator === 'grpo') advantages.fill(advantage);
    else advantages[step] = advantage;
  }
}

function tied(values: readonly Value[]): boolean {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  let magnitude = 0;
  for (const one of values) {
    low = Math.min(low, one.value);
    high = Math.max(high, one.value);
    magnitude = Math.max(magnitude, one.magnitude);
  }
  return high - low <= Math.max(TIE * magnitude, UNDERFLOW);
}

function append<T>(lists: Map<string, T[]>, key: string, item: T): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [item]);
  else list.push(item);
}
