/** @module The neural policy as a writer of tokens: cached decoding of all rows in one batch, tick by tick, sampling under a grammar. */

import { IsogymError } from '../records/errors.ts';
import { generator } from '../records/random.ts';
import { EagerRows } from './eager-rows.ts';
import type { NamedTensors } from './model.ts';
import { ReplayedRows } from './replayed-rows.ts';
import { Draw, type DrawOptions, type KeptEpisode, type Row } from './row.ts';
import type { Answered, TokenPolicy, TokenReply, TokenRequest } from './token-policy.ts';
import { checkConfig, type TransformerConfig } from './transformer/config.ts';
import type { ReplayedDecoder } from './transformer/replayed-decoder.ts';

export interface TransformerPolicyOptions extends DrawOptions {
  readonly config: TransformerConfig;
  /** Read when the first episode begins; they stay their owner's. */
  readonly weights: NamedTensors;
  readonly version: number;
  /** Decodes as recorded graphs with it, where the backend can; it must be of the same config, grammar and temperature (null where `greedy`). */
  readonly replay?: ReplayedDecoder | undefined;
}

/**
 * Continuous batching: rows join and leave between ticks. One that joins is first fed what it has not been fed (new context, and
 * the end of the last action, which was never needed); then all go on token by token. What a row gets is a function of the
 * requests and of the ticks in which they came, never of timing.
 */
export class TransformerPolicy implements TokenPolicy {
  readonly name = 'transformer';
  readonly #options: TransformerPolicyOptions;
  readonly #draw: Draw;
  #weights: NamedTensors;
  #version: number;
  /** Made of the weights for the first episode. */
  #decoding: EagerRows | ReplayedRows | undefined;
  readonly #episodes = new Map<string, KeptEpisode>();
  #busy = false;

  /** @throws INVALID_TRANSFORMER; BAD_VOCABULARY where the model has fewer ids than the tokenizer, or more and no grammar to keep them out. */
  constructor(options: TransformerPolicyOptions) {
    checkConfig(options.config);
    const { vocabulary } = options.config;
    const { size } = options.tokenizer;
    if (vocabulary < size || (options.grammar === null && vocabulary > size)) {
      throw new IsogymError('BAD_VOCABULARY', `expected a model with the tokenizer's ${size} ids, found ${vocabulary}`);
    }
    this.#options = options;
    this.#draw = new Draw(options);
    this.#weights = options.weights;
    this.#version = options.version;
  }

  get version(): number {
    return this.#version;
  }

  /** Other weights from the next request on. Episodes that live on keep their tokens; their caches are computed anew. @throws POLICY_BUSY while an action is being written. */
  setWeights(weights: NamedTensors, version: number): void {
    if (this.#busy || (this.#decoding?.rows.length ?? 0) > 0) throw busy();
    for (const episode of this.#episodes.values()) this.#decoding?.forget(episode);
    this.#decoding?.dispose();
    this.#decoding = undefined;
    this.#weights = weights;
    this.#version = version;
  }

  /**
   * @throws POLICY_BUSY while another call runs. @throws BAD_REQUEST for an episode named twice or whose action is still being
   * written, an id outside the vocabulary, nothing to continue from, or maxTokens < 1. @throws BAD_LOGIT where the model
   * overflows: all that were being written are then released.
   */
  async tick(joining: readonly TokenRequest[]): Promise<readonly Answered[]> {
    if (this.#busy) throw busy();
    this.#check(joining);
    this.#busy = true;
    const opened = joining.map((request) => this.#open(request));
    const decoding = this.#decode();
    const rows = [...decoding.rows.filter((row) => !row.done), ...opened];
    try {
      if (opened.length > 0) await decoding.join(opened, this.#episodes.values());
      else await decoding.step();
      return rows.filter((row) => row.done && this.#keeps(row)).map((row) => this.#answer(row));
    } catch (error) {
      decoding.end();
      for (const { request } of rows) this.#forget(request.episodeId);
      throw error;
    } finally {
      this.#busy = false;
      // A row that joined in this tick was not yet among those that `#forget` marks.
      for (const row of rows) if (!this.#keeps(row)) this.#drop(row, decoding);
      this.#rest();
    }
  }

  /** One action for each request: ticks until the last is finished. @throws EPISODE_RELEASED where one was released meanwhile, and as `tick` */
  async generate(requests: readonly TokenRequest[]): Promise<readonly TokenReply[]> {
    const replies = new Map<string, TokenReply>();
    for (let joining = requests; replies.size < requests.length; joining = []) {
      for (const { episodeId, reply } of await this.tick(joining)) replies.set(episodeId, reply);
      const given = requests.find(({ episodeId }) => !replies.has(episodeId) && !this.#episodes.has(episodeId));
      if (given !== undefined) {
        throw new IsogymError(
          'EPISODE_RELEASED',
          `episode ${given.episodeId} was released while it was being answered`,
        );
      }
    }
    return requests.map(({ episodeId }) => replies.get(episodeId) as TokenReply);
  }

  /** An action that is being written is not answered any more. */
  release(episodeIds: readonly string[]): void {
    for (const id of episodeIds) this.#forget(id);
    this.#rest();
  }

  #decode(): EagerRows | ReplayedRows {
    const { config, replay } = this.#options;
    this.#decoding ??=
      replay === undefined
        ? new EagerRows(config, this.#weights, this.#draw)
        : new ReplayedRows(replay, this.#weights, this.#draw);
    return this.#decoding;
  }

  #answer({ request, sampled, logprobs, cutOff }: Row): Answered {
    const reply = { ids: sampled, logprobs: this.#options.greedy ? null : logprobs, cutOff };
    return { episodeId: request.episodeId, reply };
  }

  #keeps({ request, episode }: Row): boolean {
    return this.#episodes.get(request.episodeId) === episode;
  }

  #forget(id: string): void {
    const episode = this.#episodes.get(id);
    if (episode === undefined) return;
    for (const row of this.#decoding?.rows ?? []) if (row.episode === episode) row.done = row.released = true;
    this.#decoding?.forget(episode);
    this.#episodes.delete(id);
  }

  #drop(row: Row, decoding: EagerRows | ReplayedRows): void {
    row.done = row.released = true;
    decoding.forget(row.episode);
  }

  /** Without episodes nothing is kept in the backend. */
  #rest(): void {
    if (this.#busy || this.#episodes.size > 0) return;
    this.#decoding?.dispose();
    this.#decoding = undefined;
  }

  #check(requests: readonly TokenRequest[]): void {
    const { vocabulary } = this.#options.config;
    const writing = this.#decoding?.rows.filter((row) => !row.done) ?? [];
    const seen = new Set(writing.map(({ request }) => request.episodeId));
    for (const { episodeId, newIds, maxTokens } of requests) {
      const bad = (expected: string, found: unknown) =>
        new IsogymError('BAD_REQUEST', `episode ${episodeId}: expected ${expected}, found ${found}`);
      if (seen.has(episodeId)) throw bad('one request for each episode', 'two');
      seen.add(episodeId);
      if (!(Number.isSafeInteger(maxTokens) && maxTokens > 0)) throw bad('maxTokens > 0', maxTokens);
      const stranger = newIds.find((id) => !(Number.isInteger(id) && id >= 0 && id < vocabulary));
      if (stranger !== undefined) throw bad(`token ids in [0, ${vocabulary})`, stranger);
      if (newIds.length === 0 && !this.#episodes.has(episodeId)) throw bad('at least one token of context', 'none');
    }
  }

  #open(request: TokenRequest): Row {
    let episode = this.#episodes.get(request.episodeId);
    if (episode === undefined) {
      episode = { ids: [], random: generator(request.seed), place: null, slot: null };
      this.#episodes.set(request.episodeId, episode);
    }
    episode.ids.push(...request.newIds);
    return {
      request,
      episode,
      sampled: [],
      logprobs: [],
      state: this.#draw.start,
      done: false,
      released: false,
      cutOff: false,
    };
  }
}

function busy(): IsogymError {
  return new IsogymError('POLICY_BUSY', 'expected one call at a time, found another still running', {
    hint: 'put the requests of one tick into one call',
  });
}
