/** @module The record of one episode: what was said and done, the tokens, how it ended, and how it was judged. */

import type { Action } from './action.ts';
import type { Json } from './json.ts';
import type { StopReason } from './stop-reason.ts';
import { stopRule } from './stop-reason.ts';
import { stepCount } from './unread.ts';

export const TRAJECTORY_FORMAT = 'isogym.trajectory/3';

/** The life of a call: issued → running → one of the four ends; `skipped` where it was never run. */
export type CallState = 'issued' | 'running' | 'ok' | 'error' | 'crashed' | 'timeout' | 'skipped';

/** What one tool call came to: one for every call of an action, in call order, also for those that were not executed. */
export interface CallRecord {
  readonly callId: string;
  readonly tool: string;
  readonly states: readonly CallState[];
  /** Executions of the tool, retries included; 0 if it never ran. */
  readonly attempts: number;
  /** What the policy reads. */
  readonly observation: string;
  /** Present where the call did not end `ok`: a short machine-readable cause, e.g. `unknown-tool`, `invalid-arguments`, `tool-error`, `timeout`; see `ToolRegistry.call`. */
  readonly error?: string;
  /** Failures hidden from the policy by a retry inside the registry, one message each. */
  readonly retried?: readonly string[];
}

/** One request to the policy and the observations that it caused. */
export interface Step {
  readonly index: number;
  readonly action: Action;
  readonly calls: readonly CallRecord[];
  /** Where the action's sampled tokens stand: `segments[segment].ids.slice(start, end)`. */
  readonly tokens: { readonly segment: number; readonly start: number; readonly end: number };
  /** SHA-256 [64 hexadecimal digits] of all up to here: see `hash-chain.ts`. */
  readonly hash: string;
}

/**
 * One unbroken token sequence; the four arrays have equal length [T].
 * A new segment begins whenever a prompt is not an extension of the last one.
 */
export interface Segment {
  readonly ids: readonly number[];
  /** 1 = sampled by the policy, 0 = given by the environment (or forced). */
  readonly actionMask: readonly (0 | 1)[];
  /** Behaviour policy's log-probability [nats] of each sampled token under the very distribution that sampled it; null where the mask is 0, or where the policy gives none. */
  readonly logprobs: readonly (number | null)[];
  /** Version of the weights that sampled each token; null where the mask is 0. */
  readonly policyVersion: readonly (number | null)[];
  /** False where the sampled tokens carry no logprobs: evaluation and a supervised warm start take it, the RL trainer refuses it. */
  readonly trainable: boolean;
}

/**
 * What a sandbox failure was. `out-of-memory`: a heap, or the process around it, grew beyond its bound. `hang`: something
 * ignored its timeout and its process was killed. `untrusted`: a process sent what it never should. `died`: anything else.
 */
export type SandboxFailure = 'out-of-memory' | 'hang' | 'untrusted' | 'died';

/** An episode as the rollout worker delivers it: complete, not yet judged. */
export interface Episode {
  readonly format: typeof TRAJECTORY_FORMAT;
  readonly id: string;
  /** Rollouts of one draw of a task share it, begun under one policy version, or with `rollouts.budget` under one or more, as `policyVersion` says; advantages are formed by it, never by position. */
  readonly group: string;
  readonly taskId: string;
  readonly iteration: number;
  readonly rollout: number;
  /** All randomness of this episode derives from it; that of the world of a fork from `forkedFrom.seed`. */
  readonly seed: string;
  /** Present where it was forked from another: its first `step` actions are that one's, their tokens given and not sampled. */
  readonly forkedFrom?: { readonly episode: string; readonly step: number; readonly seed: string };
  readonly policy: string;
  readonly prompt: string;
  readonly steps: readonly Step[];
  readonly segments: readonly Segment[];
  readonly stop: StopReason;
  /** For failures and truncations: what happened, in words. */
  readonly stopDetail?: string;
  /** Present where `stop` is `sandbox-failure`. */
  readonly failure?: SandboxFailure;
  /** The final answer, or null. */
  readonly final: string | null;
  /** The last link of its chain: SHA-256 of all of this record. */
  readonly hash: string;
}

const EPISODE_MEMBERS: { readonly [K in keyof Required<Episode>]: true } = {
  format: true,
  id: true,
  group: true,
  taskId: true,
  iteration: true,
  rollout: true,
  seed: true,
  forkedFrom: true,
  policy: true,
  prompt: true,
  steps: true,
  segments: true,
  stop: true,
  stopDetail: true,
  failure: true,
  final: true,
  hash: true,
};

/** The names of all that an episode's record can hold. */
export const EPISODE_KEYS: ReadonlySet<string> = new Set(Object.keys(EPISODE_MEMBERS));

/** The episode of a record, and nothing else of it: the judgement of a trajectory may quote what is held. */
export function episodeOf(record: Episode): Episode {
  const own = Object.entries(record).filter(([key]) => EPISODE_KEYS.has(key));
  return Object.fromEntries(own) as unknown as Episode;
}

/** Whether it may be learnt from, if its verifier can score it: one without a step sampled nothing that could be trained on. */
export function mayBeUsable(episode: Pick<Episode, 'stop' | 'steps'>): boolean {
  return stopRule(episode.stop).usable && stepCount(episode) > 0;
}

/** Not where the machine had a say: a process that was killed, a clock that ran out, somebody who stopped it. */
export function isRepeatable({ stop, steps }: Pick<Episode, 'stop' | 'steps'>): boolean {
  if (stop === 'sandbox-failure' || stopRule(stop).outside) return false;
  return !steps.some(({ calls }) => calls.some(({ states }) => states.includes('timeout')));
}

/** A verifier's judgement. `score: null` is "unscored": excluded everywhere, never 0. */
export interface Score {
  readonly score: number | null;
  /** score ≥ the verifier's declared success threshold, and the episode terminated. */
  readonly success: boolean;
  readonly reasons: readonly string[];
  readonly details?: Json;
}

/** A judged episode: one line of `trajectories.jsonl`. */
export interface Trajectory extends Episode {
  /** The iteration that learnt from it, where that is a later one than it was begun in: it was carried over. */
  readonly learntIn?: number;
  readonly terminated: boolean;
  readonly truncated: boolean;
  /** Drives the baseline, the loss and the denominator alike. */
  readonly usable: boolean;
  readonly verdict: Score;
  /** Reward of each step [steps]: −stepPenalty each, the verifier's score added on the last. */
  readonly rewards: readonly number[];
  /** Undiscounted sum of `rewards`; null where the episode is not usable. */
  readonly return: number | null;
}
