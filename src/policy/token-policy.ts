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

/**
 * `generate` answers one action for each request, all in one decode batch. The batch's composition and order are the caller's:
 * callers that want the same bytes give the same batches (see `src/env/rounds.ts`).
 */
export interface TokenPolicy {
  readonly name: string;
  readonly version: number;
  generate(requests: readonly TokenRequest[]): Promise<readonly TokenReply[]>;
  /** Frees what is kept for these episodes. Unknown ids are ignored. */
  release(episodeIds: readonly string[]): void;
}
