/** @module Scores as a sandbox host sends them, read as if an attacker had written them. */
import { objectOf, untrusted } from '../env/sandbox/host/protocol.ts';
import { type StopReason, stopRule } from '../records/stop-reason.ts';
import type { Score } from '../records/trajectory.ts';
import type { Judge } from './runner.ts';

/** One score for each input; what follows from the score is found here and not taken over. @throws UNTRUSTED */
export function readScores(value: unknown, stops: readonly StopReason[], judge: Judge): readonly Score[] {
  if (!Array.isArray(value) || value.length !== stops.length) throw untrusted(`${stops.length} scores`);
  return stops.map((stop, i) => {
    const { score, reasons } = objectOf(value[i]);
    if (
      !Array.isArray(reasons) ||
      reasons.length > 30 ||
      reasons.some((r) => typeof r !== 'string' || r.length > 1000)
    ) {
      throw untrusted('short reasons');
    }
    if (score === null) return { score, success: false, reasons };
    const [low, high] = judge.range;
    if (!(typeof score === 'number' && score >= low && score <= high && stopRule(stop).scored)) {
      throw untrusted('a score in its range');
    }
    return { score, success: score >= judge.success && stopRule(stop).ends === 'terminated', reasons };
  });
}
