/** @module Who acts. The episode loop knows this interface and not which kind of policy is behind it. */
import type { Action } from '../records/action.ts';
import type { Random } from '../records/random.ts';
import type { PublicTask } from '../records/task.ts';
import type { Step } from '../records/trajectory.ts';

/**
 * What a policy is given at each step: the prompt and what has been observed since, and nothing else of the task. `ids` is the whole token context so far (it grows: read it during the request only);
 * `newFrom` is the index of the first id that the policy has neither been given nor sampled itself.
 */
export interface PolicyContext {
  readonly episodeId: string;
  /** What the episode began with, as it stands in the task. */
  readonly prompt: string;
  readonly steps: readonly Step[];
  readonly ids: readonly number[];
  readonly newFrom: number;
  /** Tokens that this action may have at most. */
  readonly maxTokens: number;
  /** The policy's own generator for this episode. */
  readonly random: Random;
}

/**
 * `tokens` are the ids that make up the action, with the behaviour policy's logprob of each, or null where the policy has none
 * (a scripted policy's text is encoded once, here, and never again).
 */
export interface PolicyReply {
  readonly action: Action;
  readonly ids: readonly number[];
  readonly logprobs: readonly number[] | null;
  /** True where the action was cut off by `maxTokens`: it is recorded and never executed. */
  readonly cutOff: boolean;
  /** Tokens that stand for what this policy saw before acting and that are not the environment's text (a tabular policy's state); given before `ids`, mask 0. */
  readonly observed?: readonly number[];
}

/**
 * The door for policies that act beside the environment, in words (scripted, tabular): its public part of an episode's task, which a
 * policy that only writes tokens never gets.
 */
export type TaskOf = (episodeId: string) => PublicTask;

export interface Policy {
  /** Shown in records, e.g. `scripted:oracle`, `tabular`, `transformer`. */
  readonly name: string;
  /** Version of the weights; 0 where there are none. */
  readonly version: number;
  /** What its episodes' tokens are: the environment's text under its tokenizer, or numbers of the policy's own (`observed` and `ids` alone; prompt and observations are then not encoded). */
  readonly tokens: 'text' | 'own';
  request(context: PolicyContext, signal?: AbortSignal): PolicyReply | Promise<PolicyReply>;
  /** Called once when an episode has ended, so that a batching policy frees its cache. */
  release?(episodeId: string): void;
}
