/** @module The batcher: which episodes are live, and who joins the batch of a token policy at which tick. Tokens alone decide it, never who is faster. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TokenPolicy, TokenReply, TokenRequest } from '../policy/token-policy.ts';
import { IsogymError, inputError } from '../records/errors.ts';

export interface Schedule {
  /** Episodes that are live at once, at most; the others wait in the order of the requests. */
  readonly live: number;
}

/** As many as a config that says nothing. */
export const DEFAULT_SCHEDULE: Schedule = { live: 512 };

interface Waiting {
  readonly request: TokenRequest;
  readonly resolve: (reply: TokenReply) => void;
  readonly reject: (error: unknown) => void;
}

/** The share of a batch's rows that have left when others join: joining costs a step of its own and a copy of the caches. */
const ROOM = 1 / 4;

/**
 * An action that is finished goes to its episode at once, and the batch goes on without it. When enough rows have left, those
 * who owe a request are waited for (an environment answers in microseconds), queued episodes take the places of those that have
 * ended, and all who wait join, in the order of the requests. So neither the number of workers nor who is faster changes a
 * batch. Caches of those that have ended are freed before others join.
 */
export class Batcher {
  readonly #policy: TokenPolicy;
  readonly #schedule: Schedule;
  readonly #order: ReadonlyMap<string, number>;
  readonly #begin: ReadonlyMap<string, PromiseWithResolvers<void>>;
  #queue: string[];
  /** Begun and not ended. */
  readonly #live = new Set<string>();
  readonly #asked = new Map<string, Waiting>();
  /** In the policy's batch. */
  readonly #writing = new Map<string, Waiting>();
  /** Rows in the batch when it was last joined. */
  #rows = 0;
  #ended: string[] = [];
  #change = Promise.withResolvers<void>();

  /** @param episodeIds in the order of the requests. @throws DUPLICATE_EPISODE */
  constructor(policy: TokenPolicy, episodeIds: readonly string[], schedule: Schedule = DEFAULT_SCHEDULE) {
    this.#policy = policy;
    this.#schedule = schedule;
    this.#order = new Map(episodeIds.map((id, i) => [id, i]));
    this.#begin = new Map(episodeIds.map((id) => [id, Promise.withResolvers<void>()]));
    this.#queue = [...episodeIds];
    if (this.#order.size < episodeIds.length) {
      const twice = episodeIds.find((id, i) => this.#order.get(id) !== i);
      throw inputError('DUPLICATE_EPISODE', `expected a different id for each request, found ${twice} twice`);
    }
  }

  /** Resolves when there is room for the episode. */
  begun(episodeId: string): Promise<void> {
    return this.#begin.get(episodeId)?.promise ?? Promise.resolve();
  }

  hasBegun(episodeId: string): boolean {
    return !this.#queue.includes(episodeId);
  }

  /** Waits for the tick that finishes the answer. Rejects where the policy fails. */
  ask(request: TokenRequest): Promise<TokenReply> {
    return new Promise((resolve, reject) => {
      this.#asked.set(request.episodeId, { request, resolve, reject });
      this.#change.resolve();
    });
  }

  /** The episode asks no more. What it still waits for, because its worker died, is never answered. */
  end(episodeId: string): void {
    if (!this.#live.delete(episodeId)) {
      this.#queue = this.#queue.filter((id) => id !== episodeId);
      return;
    }
    this.#asked.delete(episodeId);
    this.#writing.delete(episodeId);
    this.#ended.push(episodeId);
    this.#change.resolve();
  }

  /** Until every episode has ended. */
  async run(): Promise<void> {
    for (;;) {
      let joining: readonly Waiting[] = [];
      if (this.#hasRoom()) {
        await this.#settle();
        joining = [...this.#asked.values()].sort((a, b) => this.#byOrder(a.request.episodeId, b.request.episodeId));
        this.#release();
        if (this.#live.size === 0) return;
        this.#rows = joining.length + this.#writing.size;
      }
      await this.#tick(joining);
      // Messages, Ctrl-C and the terminal get their turn.
      await nextTurn();
    }
  }

  #hasRoom(): boolean {
    return this.#writing.size === 0 || this.#rows - this.#writing.size >= ROOM * this.#rows;
  }

  /** Until everyone who lives is in the batch or asks to be, and nobody is queued who could live. */
  async #settle(): Promise<void> {
    for (;;) {
      while (this.#live.size < this.#schedule.live) {
        const next = this.#queue.shift();
        if (next === undefined) break;
        this.#live.add(next);
        this.#begin.get(next)?.resolve();
      }
      if (this.#asked.size + this.#writing.size === this.#live.size) return;
      await this.#change.promise;
      this.#change = Promise.withResolvers();
    }
  }

  async #tick(joining: readonly Waiting[]): Promise<void> {
    for (const waiting of joining) {
      this.#asked.delete(waiting.request.episodeId);
      this.#writing.set(waiting.request.episodeId, waiting);
    }
    try {
      for (const { episodeId, reply } of await this.#policy.tick(joining.map(({ request }) => request))) {
        const waiting = this.#writing.get(episodeId);
        if (waiting === undefined && this.#live.has(episodeId)) {
          throw new IsogymError('POLICY_REPLY', `expected a reply to who had asked, found one to ${episodeId}`);
        }
        this.#writing.delete(episodeId);
        waiting?.resolve(reply);
      }
    } catch (error) {
      for (const waiting of this.#writing.values()) waiting.reject(error);
      this.#writing.clear();
    }
  }

  #release(): void {
    if (this.#ended.length > 0) this.#policy.release(this.#ended.sort((a, b) => this.#byOrder(a, b)));
    this.#ended = [];
  }

  #byOrder(a: string, b: string): number {
    return (this.#order.get(a) ?? 0) - (this.#order.get(b) ?? 0);
  }
}
