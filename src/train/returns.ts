/** @module Returns: the one place where a score and a step penalty become rewards, and rewards become returns. */
import { IsogymError } from '../records/errors.ts';
import { stopRule } from '../records/stop-reason.ts';
import { type Episode, mayBeUsable, type Score, type Trajectory } from '../records/trajectory.ts';
import { judged, stepCount } from '../records/unread.ts';

/**
 * Turns an episode and its verdict into a trajectory.
 *
 * Every step, i.e. every request to the policy, the one with the final answer included, costs `stepPenalty`; the verifier's
 * score is added to the last. A truncated episode's score is never positive, min(score, 0), and it is never a success.
 *
 * Not usable, with `return: null`: an episode whose stop reason says so, one without a finite score, and one without a step
 * (it sampled nothing that could be trained on, and must not move its siblings' baseline).
 *
 * @param stepPenalty ≥ 0, in units of the score.
 */
export function judge(episode: Episode, verdict: Score, stepPenalty: number): Trajectory {
  const rule = stopRule(episode.stop);
  const terminated = rule.ends === 'terminated';
  const truncated = rule.ends === 'truncated';
  const rewards = new Array<number>(stepCount(episode)).fill(0 - stepPenalty);
  const last = rewards.length - 1;
  // NaN and infinity are no judgement: "unscored", never a number.
  const score = rule.scored && Number.isFinite(verdict.score) ? verdict.score : null;
  const usable = mayBeUsable(episode) && score !== null;
  if (usable) {
    rewards[last] = (rewards[last] ?? 0) + (truncated ? Math.min(score, 0) : score);
  }
  return judged(episode, {
    terminated,
    truncated,
    usable,
    verdict: { ...verdict, score, success: verdict.success && terminated && score !== null },
    rewards,
    return: usable ? rewards.reduce((sum, reward) => sum + reward, 0) : null,
  });
}

/**
 * The discounted sum of what follows: Gₜ = Σ_{k ≥ t} γ^(k − t) rₖ (Sutton & Barto 2018, eq. 3.8).
 * The clock is the step, not the token, so neither the length of an action nor that of an observation discounts anything.
 *
 * @param gamma γ in [0, 1].
 * @returns [steps]
 */
export function rewardsToGo(rewards: readonly number[], gamma: number): Float64Array {
  const out = new Float64Array(rewards.length);
  let following = 0;
  for (let t = rewards.length - 1; t >= 0; t--) {
    following = (rewards[t] ?? 0) + gamma * following;
    out[t] = following;
  }
  return out;
}

/**
 * For each segment, which step sampled each token: its place in `steps`, or −1 where the token was given. One array [T] a segment.
 *
 * @throws TOKENS_UNCLAIMED where a sampled token belongs to no step or to two: it would have no return, or two.
 */
export function sampledBy(episode: Pick<Episode, 'id' | 'steps' | 'segments'>): readonly Int32Array[] {
  const owners = episode.segments.map((segment) => new Int32Array(segment.ids.length).fill(-1));
  const unclaimed = (segment: number, position: number, by: string) =>
    new IsogymError(
      'TOKENS_UNCLAIMED',
      `episode ${episode.id}, segment ${segment}, position ${position}: expected a sampled token of exactly one step, found ${by}`,
      { hint: 'Step.tokens must cover the sampled tokens of its own action, and only those.' },
    );
  for (const [place, step] of episode.steps.entries()) {
    const { segment, start, end } = step.tokens;
    const owner = owners[segment];
    const mask = episode.segments[segment]?.actionMask;
    for (let t = start; t < end; t++) {
      if (mask?.[t] === 0) continue;
      if (owner?.[t] !== -1) throw unclaimed(segment, t, owner?.[t] === undefined ? 'no such token' : 'two');
      owner[t] = place;
    }
  }
  for (const [s, segment] of episode.segments.entries()) {
    const missed = segment.actionMask.findIndex((mask, t) => mask === 1 && owners[s]?.[t] === -1);
    if (missed >= 0) throw unclaimed(s, missed, 'none');
  }
  return owners;
}
