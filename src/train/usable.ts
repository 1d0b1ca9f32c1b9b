/** @module Which episodes can be used, and the one error where none can. */
import { IsogymError } from '../records/errors.ts';
import type { Trajectory } from '../records/trajectory.ts';

/** @throws NO_USABLE_ROLLOUT with how the episodes ended and why the first was left out: an error, not an epoch. */
export function usableOnly(trajectories: readonly Trajectory[]): readonly Trajectory[] {
  const usable = trajectories.filter((trajectory) => trajectory.usable);
  if (usable.length > 0) return usable;
  throw new IsogymError(
    'NO_USABLE_ROLLOUT',
    `expected at least one usable episode, found none among ${trajectories.length}${stopsOf(trajectories)}${whyNot(trajectories)}`,
    { hint: 'In the records of the episodes `stopDetail` and `verdict.reasons` say why each was left out.' },
  );
}

/** e.g. ` (4 sandbox-failure, 1 final)`. */
function stopsOf(trajectories: readonly Trajectory[]): string {
  const counts = new Map<string, number>();
  for (const { stop } of trajectories) counts.set(stop, (counts.get(stop) ?? 0) + 1);
  return counts.size === 0 ? '' : ` (${[...counts].map(([stop, count]) => `${count} ${stop}`).join(', ')})`;
}

function whyNot([first]: readonly Trajectory[]): string {
  const why = first?.stopDetail ?? first?.verdict.reasons[0];
  return why === undefined ? '' : `; episode ${first?.id}: ${why}`;
}
