/** @module Episodes made from a few numbers, for tests of what is learnt from them. */
import type { StopReason } from '../../src/records/stop-reason.ts';
import {
  type Episode,
  type Score,
  type Segment,
  TRAJECTORY_FORMAT,
  type Trajectory,
} from '../../src/records/trajectory.ts';

/** A segment from its mask, e.g. `'001100'`. Ids default to 0, 1, 2, …; logprobs of sampled tokens to −1. */
export function segment(
  mask: string,
  given: { ids?: readonly number[]; logprobs?: readonly (number | null)[] } = {},
): Segment {
  const actionMask = [...mask].map((one) => (one === '1' ? 1 : 0));
  return {
    ids: given.ids ?? actionMask.map((_, t) => t),
    actionMask,
    logprobs: given.logprobs ?? actionMask.map((one) => (one === 1 ? -1 : null)),
    policyVersion: actionMask.map((one) => (one === 1 ? 0 : null)),
    trainable: true,
  };
}

/** Each unbroken run of sampled tokens is one step, unless the ranges are given. */
export function episode(given: {
  id?: string;
  group?: string;
  prompt?: string;
  stop?: StopReason;
  segments?: readonly Segment[];
  ranges?: readonly (readonly [segment: number, start: number, end: number])[];
}): Episode {
  const segments = given.segments ?? [segment('0101')];
  const ranges =
    given.ranges ??
    segments.flatMap(({ actionMask }, s) =>
      [...actionMask.join('').matchAll(/1+/g)].map((run) => [s, run.index, run.index + run[0].length] as const),
    );
  return {
    format: TRAJECTORY_FORMAT,
    id: given.id ?? 'e',
    group: given.group ?? 'g',
    taskId: 'task',
    iteration: 0,
    rollout: 0,
    seed: 'seed',
    policy: 'made',
    prompt: given.prompt ?? 'prompt',
    steps: ranges.map(([s, start, end], index) => ({
      index,
      action: { text: '', calls: [] },
      calls: [],
      tokens: { segment: s, start, end },
      hash: '',
    })),
    segments,
    stop: given.stop ?? 'final',
    final: null,
    hash: '',
  };
}

export function verdict(score: number | null, success = score !== null && score >= 1): Score {
  return { score, success, reasons: [] };
}

/** A usable trajectory with these rewards, one step each. */
export function rewarded(id: string, group: string, rewards: readonly number[], prompt = 'prompt'): Trajectory {
  const made = episode({ id, group, prompt, segments: [segment('01'.repeat(rewards.length))] });
  return {
    ...made,
    terminated: true,
    truncated: false,
    usable: true,
    verdict: verdict(0),
    rewards,
    return: rewards.reduce((sum, reward) => sum + reward, 0),
  };
}
