/** @module A policy that writes tokens in batches: the seam between the rollout loops (in workers) and the tensors (in one place). */

export interface TokenRequest {
  /** Unique while the episode lives. */
  readonly episodeId: string;
  /** The tokens of the context that this policy has not been given yet for this episode (its own sampled tokens are known to it). */
  readonly newIds: readonly number[];
  readonly maxTokens: number;
  /** Seeds this episode's sampling generator; read at the first request only. */
  readonly seed: string;
}

export interface TokenReply {
  /** The action's tokens, the end token included unless cut off. */
  readonly ids: readonly number[];
  /** Of each id, under the distribution that sampled it (temperature and grammar included); null where it was not sampled (greedy). */
  readonly logprobs: readonly number[] | null;
  readonly cutOff: boolean;
}

/** A finished action. */
export interface Answered {
  readonly episodeId: string;
  readonly reply: TokenReply;
}

/**
 * Writes actions in ticks. A tick takes `joining` into the batch and feeds them; one that nobody joins takes each row of the
 * batch a token further, or several where the grammar leaves no choice. It gives the actions that it has finished, in the order
 * in which they joined. Who joins when is the caller's: callers that want the same bytes give the same ticks (see
 * `src/env/rollouts/batcher.ts`). Where a tick fails, so have all actions that were being written.
 */
export interface TokenPolicy {
  readonly name: string;
  readonly version: number;
  tick(joining: readonly TokenRequest[]): Promise<readonly Answered[]>;
  /** Frees what is kept for these episodes; what was being written for them is given up. Unknown ids are ignored. */
  release(episodeIds: readonly string[]): void;
}
