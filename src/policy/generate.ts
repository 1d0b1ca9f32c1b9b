/** @module The neural policy as a writer of tokens: cached decoding of all rows in one batch, sampling here, under a grammar. */

import { IsogymError } from '../records/errors.ts';
import { generator, type Random } from '../records/random.ts';
import type { Grammar } from './grammar/index.ts';
import type { NamedTensors } from './model.ts';
import { greedyToken, sampleToken } from './sampling.ts';
import type { TokenPolicy, TokenReply, TokenRequest } from './token-policy.ts';
import type { Tokenizer } from './tokenizer.ts';
import { leave, type Place } from './transformer/cache-block.ts';
import { checkConfig, type TransformerConfig } from './transformer/config.ts';
import { DecodeBatch, Decoder } from './transformer/decoder.ts';

export interface TransformerPolicyOptions {
  readonly config: TransformerConfig;
  /** Read when the first episode begins; they stay their owner's. */
  readonly weights: NamedTensors;
  readonly version: number;
  /** Null: every id may follow every other. */
  readonly grammar: Grammar | null;
  readonly tokenizer: Pick<Tokenizer, 'size' | 'end'>;
  /** T > 0; not used where `greedy`. */
  readonly temperature: number;
  /** Takes the most likely allowed token; replies then carry no logprobs. */
  readonly greedy: boolean;
}

/** What is kept of an episode between its requests. */
interface Episode {
  /** Everything said so far, given and sampled. */
  readonly ids: number[];
  readonly random: Random;
  /** The cache of the first `place.columns.length` of the ids; null where there is none. */
  place: Place | null;
}

/** One request being answered. */
interface Row {
  readonly request: TokenRequest;
  readonly episode: Episode;
  readonly sampled: number[];
  readonly logprobs: number[];
  /** Of the grammar. */
  state: number;
  done: boolean;
  cutOff: boolean;
}

/**
 * All rows are fed in one step what they have not been fed (new context, and the end of the last action, which was never
 * needed), then go on token by token. A token about which the grammar leaves no choice has logprob 0 and takes one uniform like
 * every other, but waits for no step: it is fed when its row needs the next real choice. What a row gets is a function of the
 * requests and their order, never of timing.
 */
export class TransformerPolicy implements TokenPolicy {
  readonly name = 'transformer';
  readonly #options: TransformerPolicyOptions;
  readonly #all: Int32Array;
  #weights: NamedTensors;
  #version: number;
  #decoder: Decoder | undefined;
  readonly #episodes = new Map<string, Episode>();
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
    this.#weights = options.weights;
    this.#version = options.version;
    this.#all = Int32Array.from({ length: options.tokenizer.size }, (_, id) => id);
  }

  get version(): number {
    return this.#version;
  }

  /** Other weights from the next request on. Episodes that live on keep their tokens; their caches are computed anew. @throws POLICY_BUSY during `generate`. */
  setWeights(weights: NamedTensors, version: number): void {
    if (this.#busy) throw busy();
    for (const episode of this.#episodes.values()) forget(episode);
    this.#decoder?.dispose();
    this.#decoder = undefined;
    this.#weights = weights;
    this.#version = version;
  }

  /**
   * @throws POLICY_BUSY while another call runs. @throws BAD_REQUEST for an episode named twice, an id outside the vocabulary,
   * nothing to continue from, or maxTokens < 1. @throws BAD_LOGIT where the model overflows: the batch's episodes are then released.
   */
  async generate(requests: readonly TokenRequest[]): Promise<readonly TokenReply[]> {
    if (requests.length === 0) return [];
    this.#check(requests);
    if (this.#busy) throw busy();
    this.#busy = true;
    try {
      const rows = requests.map((request) => this.#open(request));
      await this.#decode(rows);
      return rows.map((row) => ({
        ids: row.sampled,
        logprobs: this.#options.greedy ? null : row.logprobs,
        cutOff: row.cutOff,
      }));
    } catch (error) {
      this.release(requests.map((request) => request.episodeId));
      throw error;
    } finally {
      this.#busy = false;
      this.#rest();
    }
  }

  /** During `generate` too: its rows are answered all the same, and nothing is kept of them. */

  release(episodeIds: readonly string[]): void {
    for (const id of episodeIds) {
      const episode = this.#episodes.get(id);
      if (episode === undefined) continue;
      forget(episode);
      this.#episodes.delete(id);
    }
    this.#rest();
  }

  /** Without episodes nothing is kept in the backend. */
  #rest(): void {
    if (this.#busy || this.#episodes.size > 0) return;
    this.#decoder?.dispose();
    this.#decoder = undefined;
  }

  #check(requests: readonly TokenRequest[]): void {
    const { vocabulary } = this.#options.config;
    const seen = new Set<string>();
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
      episode = { ids: [], random: generator(request.seed), place: null };
      this.#episodes.set(request.episodeId, episode);
    }
    episode.ids.push(...request.newIds);
    const state = this.#options.grammar?.start ?? 0;
    return { request, episode, sampled: [], logprobs: [], state, done: false, cutOff: false };
  }

  async #decode(all: readonly Row[]): Promise<void> {
    const { config } = this.#options;
    this.#decoder ??= new Decoder(config, this.#weights);
    const batch = new DecodeBatch(
      this.#decoder,
      all.map((row) => row.episode.place),
    );
    try {
      for (const { episode } of all) forget(episode);
      let rows = all;
      const waiting = (row: Row, r: number) => row.episode.ids.length - batch.length(r);
      let T = Math.max(...rows.map(waiting));
      for (;;) {
        const chunks = rows.map((row, r) =>
          row.done ? [] : row.episode.ids.slice(batch.length(r), batch.length(r) + T),
        );
        const logits = await batch.feed(chunks);
        for (const [r, row] of rows.entries()) {
          if (!row.done && waiting(row, r) === 0) this.#extend(row, logits, r * config.vocabulary);
        }
        const live = [...rows.keys()].filter((r) => rows[r]?.done === false);
        if (live.length === 0) break;
        // Half the rows or fewer: a copy of their cache costs less than the steps of the others.
        if (2 * live.length <= rows.length) {
          for (const [r, row] of rows.entries()) if (row.done) this.#park(row, batch, r);
          batch.keep(live);
          rows = live.map((r) => rows[r] as Row);
        }
        // Unequal runs of forced tokens are fed by the shortest: a padded column would cost every row.
        T = Math.min(...rows.map((row, r) => (row.done ? Number.POSITIVE_INFINITY : waiting(row, r))));
      }
      for (const [r, row] of rows.entries()) this.#park(row, batch, r);
    } finally {
      batch.end();
    }
  }

  #park(row: Row, batch: DecodeBatch, r: number): void {
    if (this.#episodes.get(row.request.episodeId) === row.episode) row.episode.place = batch.place(r);
  }

  /** The next token, and after it every token about which there is no choice. */
  #extend(row: Row, logits: Float32Array, offset: number): void {
    const { grammar, temperature, greedy, tokenizer } = this.#options;
    let allowed = grammar?.allowed(row.state) ?? this.#all;
    for (let first = true; first || allowed.length === 1; first = false) {
      const only = first ? undefined : allowed[0];
      const { id, logprob } =
        only !== undefined
          ? { id: only, logprob: 0 }
          : greedy
            ? { id: greedyToken(logits, offset, allowed), logprob: 0 }
            : sampleToken(logits, offset, allowed, temperature, row.episode.random());
      if (only !== undefined && !greedy) row.episode.random();
      row.sampled.push(id);
      row.logprobs.push(logprob);
      row.episode.ids.push(id);
      row.cutOff = id !== tokenizer.end && row.sampled.length === row.request.maxTokens;
      row.done = id === tokenizer.end || row.cutOff;
      if (row.done) return;
      if (grammar !== null) row.state = grammar.next(row.state, id);
      allowed = grammar?.allowed(row.state) ?? this.#all;
    }
  }
}

function busy(): IsogymError {
  return new IsogymError('POLICY_BUSY', 'expected one call at a time, found another generate still running', {
    hint: 'put the requests of one tick into one call',
  });
}

function forget(episode: Episode): void {
  if (episode.place !== null) leave(episode.place.block);
  episode.place = null;
}
