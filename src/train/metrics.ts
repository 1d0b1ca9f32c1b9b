/** @module One line of `metrics.jsonl`: a function of config, seed and backend, with no clock in it. */

import type { BatchFigures } from '../env/rollouts/schedule.ts';
import { STOP_RULES, type StopReason } from '../records/stop-reason.ts';
import type { SandboxFailure, Trajectory } from '../records/trajectory.ts';
import type { AdvantageStatistics } from './advantages.ts';
import type { Carried } from './groups.ts';
import type { UpdateStatistics } from './learner.ts';

/** The figures of one iteration; each with its formula in docs/metrics.md. Means are over usable episodes, null where there are none. */
export interface IterationMetrics {
  readonly iteration: number;
  readonly phase: 'train';
  readonly episodes: number;
  readonly usable: number;
  readonly successRate: number | null;
  readonly meanReturn: number | null;
  readonly meanScore: number | null;
  readonly meanSteps: number | null;
  /** Episodes by stop reason; reasons that did not occur are left out. */
  readonly stops: Readonly<Partial<Record<StopReason, number>>>;
  /** Episodes that ended as `sandbox-failure`, by what it was; kinds that did not occur are left out. */
  readonly sandboxFailures: Readonly<Partial<Record<SandboxFailure, number>>>;
  readonly unscored: number;
  /** Tool calls that ended otherwise than `ok`, and failures hidden by a retry inside the registry. */
  readonly toolErrors: number;
  readonly toolRetries: number;
  readonly malformed: number;
  readonly tokens: number;
  readonly sampledTokens: number;
  /** Of a token policy's batch: its ticks, and how full it was; null where the policy acts in the workers. */
  readonly batch: { readonly ticks: number; readonly fill: number | null } | null;
  /** Rollouts that were stopped because enough of their group had finished, and the bias that it brings; null where none was. */
  readonly stragglers: Stragglers | null;
  /** With a budget of ticks; null without one. */
  readonly carried: CarriedCounts | null;
  /** Optimizer steps between the oldest weights that sampled in this batch and those that learn from it; 0 on-policy. */
  readonly staleness: number;
  readonly groups: number;
  readonly zeroVarianceGroups: number;
  readonly singletonGroups: number;
  readonly learningRate: number;
  readonly update: UpdateStatistics;
}

export interface CarriedCounts {
  /** Episodes of this batch that were begun in an earlier iteration. */
  readonly learnt: number;
  /** Left to the next iteration: in their midst, and ended in groups that are not complete. */
  readonly suspended: number;
  readonly ended: number;
  /** Sampled tokens of this batch whose weights were older than those that sampled last. */
  readonly staleTokens: number;
}

export interface Stragglers {
  readonly stopped: number;
  /** Mean sampled tokens of those that were kept, and of these and the stragglers that had sampled any: these with the actions that they had finished, so this is a lower bound. */
  readonly meanTokensKept: number;
  readonly meanTokensBegun: number;
}

export function iterationMetrics(of: {
  readonly iteration: number;
  readonly trajectories: readonly Trajectory[];
  readonly batch: BatchFigures | null;
  readonly carried?: Carried | undefined;
  /** Of the weights that learn from it. */
  readonly version: number;
  readonly advantages: AdvantageStatistics;
  readonly update: UpdateStatistics;
  readonly rate: number;
}): IterationMetrics {
  const { trajectories, advantages } = of;
  const usable = trajectories.filter((t) => t.usable);
  const mean = (value: (t: Trajectory) => number) =>
    usable.length === 0 ? null : usable.reduce((sum, t) => sum + value(t), 0) / usable.length;
  const calls = trajectories.flatMap((t) => t.steps.flatMap((step) => step.calls));
  const segments = trajectories.flatMap((t) => t.segments);
  return {
    iteration: of.iteration,
    phase: 'train',
    episodes: trajectories.length,
    usable: usable.length,
    successRate: mean((t) => Number(t.verdict.success)),
    meanReturn: mean((t) => t.return ?? 0),
    meanScore: mean((t) => t.verdict.score ?? 0),
    meanSteps: mean((t) => t.steps.length),
    stops: countsOf(Object.keys(STOP_RULES) as StopReason[], (t) => t.stop, trajectories),
    sandboxFailures: countsOf(SANDBOX_FAILURES, (t) => t.failure, trajectories),
    unscored: trajectories.filter((t) => STOP_RULES[t.stop].scored && t.verdict.score === null).length,
    toolErrors: calls.filter((call) => call.states.at(-1) !== 'ok').length,
    toolRetries: calls.reduce((sum, call) => sum + (call.retried?.length ?? 0), 0),
    malformed: trajectories.reduce(
      (sum, t) => sum + t.steps.filter((step) => step.action.calls.some((call) => call.malformed !== undefined)).length,
      0,
    ),
    tokens: segments.reduce((sum, s) => sum + s.ids.length, 0),
    sampledTokens: trajectories.reduce((sum, t) => sum + sampledTokens(t), 0),
    batch: of.batch && { ticks: of.batch.ticks, fill: of.batch.fill },
    stragglers: stragglersOf(trajectories),
    carried: of.carried === undefined ? null : carriedCounts(trajectories, of.carried),
    staleness: of.version - oldestVersion(trajectories, of.version),
    groups: advantages.groups,
    zeroVarianceGroups: advantages.zeroVariance,
    singletonGroups: advantages.singletons,
    learningRate: of.rate,
    update: of.update,
  };
}

const SANDBOX_FAILURES: readonly SandboxFailure[] = ['out-of-memory', 'hang', 'untrusted', 'died'];

/** How many trajectories are of each kind, in the order of the kinds; those that did not occur are left out. */
function countsOf<Kind extends string>(
  kinds: readonly Kind[],
  kindOf: (trajectory: Trajectory) => Kind | undefined,
  trajectories: readonly Trajectory[],
): Partial<Record<Kind, number>> {
  const counts: Partial<Record<Kind, number>> = {};
  for (const kind of kinds) {
    const count = trajectories.filter((t) => kindOf(t) === kind).length;
    if (count > 0) counts[kind] = count;
  }
  return counts;
}

function sampledTokens({ segments }: Trajectory): number {
  return segments.reduce((sum, s) => sum + s.actionMask.reduce<number>((n, bit) => n + bit, 0), 0);
}

function stragglersOf(trajectories: readonly Trajectory[]): Stragglers | null {
  const kept = trajectories.filter((t) => t.stop !== 'straggler');
  if (kept.length === trajectories.length) return null;
  const meanTokens = (of: readonly Trajectory[]) => of.reduce((sum, t) => sum + sampledTokens(t), 0) / of.length;
  return {
    stopped: trajectories.length - kept.length,
    meanTokensKept: meanTokens(kept),
    meanTokensBegun: meanTokens(trajectories.filter((t) => t.stop !== 'straggler' || sampledTokens(t) > 0)),
  };
}

function carriedCounts(trajectories: readonly Trajectory[], { suspended, ended }: Carried): CarriedCounts {
  const versions = sampledUnder(trajectories);
  const latest = versions.reduce((most, version) => Math.max(most, version), 0);
  return {
    learnt: trajectories.filter((t) => t.learntIn !== undefined).length,
    suspended: suspended.length,
    ended: ended.length,
    staleTokens: versions.filter((version) => version < latest).length,
  };
}

/** Versions of the weights that sampled each token. */
function sampledUnder(trajectories: readonly Trajectory[]): readonly number[] {
  return trajectories.flatMap((t) => t.segments.flatMap((s) => s.policyVersion.filter((v) => v !== null)));
}

function oldestVersion(trajectories: readonly Trajectory[], latest: number): number {
  return sampledUnder(trajectories).reduce((least, version) => Math.min(least, version), latest);
}
