/** @module What an episode of toy-lookup did, in the exercise's three words. */
import type { Trajectory } from '../../records/trajectory.ts';

/**
 * - `full path`: both facts looked up, added, answered.
 * - `lookup skipped`: answered knowing one fact.
 * - `immediate answer`: answered knowing none.
 * - `other`: answered knowing both without adding them, or not at all.
 */
export const BEHAVIOURS = ['full path', 'lookup skipped', 'immediate answer', 'other'] as const;
export type Behaviour = (typeof BEHAVIOURS)[number];

export function behaviourOf({ steps, final }: Pick<Trajectory, 'steps' | 'final'>): Behaviour {
  if (final === null) return 'other';
  const known = new Set<string>();
  let added = false;
  for (const step of steps) {
    for (const [i, call] of step.calls.entries()) {
      if (call.error !== undefined) continue;
      if (call.tool === 'lookup') known.add(String(step.action.calls[i]?.arguments?.key));
      if (call.tool === 'calculator') added = known.size === 2;
    }
  }
  if (known.size === 0) return 'immediate answer';
  if (known.size === 1) return 'lookup skipped';
  return known.size === 2 && added ? 'full path' : 'other';
}
