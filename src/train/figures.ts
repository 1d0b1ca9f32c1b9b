/** @module What a person is told of an iteration while a run goes on, and its line of `timings.jsonl`: here a clock has a say. */
import type { BatchFigures } from '../env/rollouts/schedule.ts';
import type { PolicyRow } from './evaluate.ts';
import type { Iteration } from './loop.ts';
import type { IterationMetrics } from './metrics.ts';
import type { Interval } from './statistics.ts';

/** See docs/metrics.md. */
export interface Timings extends Partial<BatchShares> {
  readonly rolloutSeconds: number;
  readonly updateSeconds: number;
  /** Of the update, with the next rollouts beside it; only with `rollouts.staleness`. */
  readonly overlapSeconds?: number;
  readonly rolloutsPerSecond: number;
  readonly sampledTokensPerSecond: number;
}

/** How full the batch was, and the shares of its time in which it waited for environments, and in which only the last rows were left. */
interface BatchShares {
  /** Null where no token was written. */
  readonly fill: number | null;
  readonly waitingShare: number;
  readonly stragglingShare: number;
}

export function timingsOf({ trajectories, batch, metrics, marks }: Iteration): Timings {
  const rolloutSeconds = (marks.collected - marks.start) / 1000;
  return {
    rolloutSeconds,
    updateSeconds: (marks.end - marks.learning) / 1000,
    ...(marks.next === undefined ? {} : { overlapSeconds: overlapMs(marks.end, marks.next) / 1000 }),
    rolloutsPerSecond: trajectories.length / rolloutSeconds,
    sampledTokensPerSecond: metrics.sampledTokens / rolloutSeconds,
    ...(batch === null ? {} : batchShares(batch)),
  };
}

/** Rollouts that began with the update: until the first of them ended. */
function overlapMs(end: number, { start, collected }: { readonly start: number; readonly collected: number }): number {
  return Math.max(0, Math.min(end, collected) - start);
}

function batchShares({ fill, ms, waitingMs, stragglingMs }: BatchFigures): BatchShares {
  const share = (part: number) => (ms > 0 ? part / ms : 0);
  return { fill, waitingShare: share(waitingMs), stragglingShare: share(stragglingMs) };
}

/** How many episodes are usable is said where not all are: the means are over these alone. */
export function progressFigures(
  { usable, episodes, meanReturn, successRate, update }: IterationMetrics,
  { rolloutsPerSecond, sampledTokensPerSecond, fill, stragglingShare }: Timings,
): Readonly<Record<string, number | string>> {
  return {
    ...(usable < episodes ? { usable: `${usable}/${episodes}` } : {}),
    reward: meanReturn ?? Number.NaN,
    success: successRate ?? Number.NaN,
    entropy: update.steps[0]?.entropy ?? Number.NaN,
    'rollouts/s': rolloutsPerSecond,
    'tokens/s': sampledTokensPerSecond,
    ...(stragglingShare === undefined ? {} : { fill: fill ?? Number.NaN, straggling: stragglingShare }),
  };
}

export function heldOutNote(done: number, row: PolicyRow): string {
  const success = ({ mean }: Interval, unusable: number) =>
    `${mean.toFixed(3)}${unusable === 0 ? '' : ` (unusable: ${unusable} of ${row.tasks})`}`;
  const [greedy, sampled] = [success(row.success, row.unusable), success(row.sampledSuccess, row.sampledUnusable)];
  return `held-out after iteration ${done}: success ${greedy} greedy, ${sampled} sampled`;
}
