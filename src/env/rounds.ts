/** @module Rounds: the requests of all live episodes, in one batch whose composition nothing but the requests decides. */
import type { TokenPolicy, TokenReply, TokenRequest } from '../policy/token-policy.ts';
import { IsogymError, inputError } from '../records/errors.ts';

interface Waiting {
  readonly request: TokenRequest;
  readonly resolve: (reply: TokenReply) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * A round begins when every live episode either waits for tokens or has ended. It holds all who wait, in the order of the
 * requests, so that neither the number of workers nor who is faster changes a batch. Caches of those that have ended are
 * freed as it begins.
 */
export class Rounds {
  readonly #policy: TokenPolicy;
  readonly #order: ReadonlyMap<string, number>;
  readonly #live: Set<string>;
  readonly #waiting = new Map<string, Waiting>();
  #ended: string[] = [];
  #generating = false;

  /** @param episodeIds in the order of the requests. @throws DUPLICATE_EPISODE */
  constructor(policy: TokenPolicy, episodeIds: readonly string[]) {
    this.#policy = policy;
    this.#order = new Map(episodeIds.map((id, i) => [id, i]));
    this.#live = new Set(episodeIds);
    if (this.#live.size < episodeIds.length) {
      const twice = episodeIds.find((id, i) => this.#order.get(id) !== i);
      throw inputError('DUPLICATE_EPISODE', `expected a different id for each request, found ${twice} twice`);
    }
  }

  /** Waits for the round that answers it. Rejects where the policy fails. */
  ask(request: TokenRequest): Promise<TokenReply> {
    return new Promise((resolve, reject) => {
      this.#waiting.set(request.episodeId, { request, resolve, reject });
      this.#next();
    });
  }

  /** The episode asks no more. One that still waits, because its worker died, is never answered. */
  end(episodeId: string): void {
    if (!this.#live.delete(episodeId)) return;
    this.#waiting.delete(episodeId);
    this.#ended.push(episodeId);
    this.#next();
  }

  #next(): void {
    if (!this.#generating && this.#waiting.size === this.#live.size) void this.#round();
  }

  async #round(): Promise<void> {
    const byOrder = (a: string, b: string) => (this.#order.get(a) ?? 0) - (this.#order.get(b) ?? 0);
    const batch = [...this.#waiting.values()].sort((a, b) => byOrder(a.request.episodeId, b.request.episodeId));
    const ended = this.#ended.sort(byOrder);
    this.#waiting.clear();
    this.#ended = [];
    this.#generating = true;
    try {
      if (ended.length > 0) this.#policy.release(ended);
      const replies = batch.length > 0 ? await this.#policy.generate(batch.map((waiting) => waiting.request)) : [];
      if (replies.length !== batch.length) {
        throw new IsogymError(
          'POLICY_REPLY',
          `expected ${batch.length} replies of the policy, found ${replies.length}`,
        );
      }
      for (const [i, reply] of replies.entries()) batch[i]?.resolve(reply);
    } catch (error) {
      for (const waiting of batch) waiting.reject(error);
    }
    this.#generating = false;
    // Those whose worker died meanwhile.
    if (this.#ended.length > 0) this.#next();
  }
}
