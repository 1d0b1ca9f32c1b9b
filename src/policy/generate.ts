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
import type { ReplayedDecoder, Sampled } from './transformer/replayed-decoder.ts';

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
  /** Decodes as recorded graphs with it, where the backend can; it must be of the same config, grammar and temperature (null where `greedy`). */
  readonly replay?: ReplayedDecoder | undefined;
}

/** What is kept of an episode between its requests. */
interface Episode {
  /** Everything said so far, given and sampled. */
  readonly ids: number[];
  readonly random: Random;
  /** The cache of the first `place.columns.length` of the ids; null where there is none. */
  place: Place | null;
  /** The same where decoding is replayed: its slot. */
  slot: number | null;
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
  /** Stands for these weights in a replayed decoder. */
  #loaded = {};

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
    for (const episode of this.#episodes.values()) this.#forget(episode);
    this.#loaded = {};
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
      const { replay } = this.#options;
      if (replay === undefined) await this.#decode(rows);
      else this.#replay(replay, rows);
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
      this.#forget(episode);
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
      episode = { ids: [], random: generator(request.seed), place: null, slot: null };
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
          if (!row.done && waiting(row, r) === 0) this.#sample(row, logits, r * config.vocabulary);
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

  /** As `#decode`, in calls that sample as well; rows that are done are not fed any more. */
  #replay(decoder: ReplayedDecoder, rows: readonly Row[]): void {
    const { greedy } = this.#options;
    if (!decoder.isLoaded(this.#loaded)) {
      for (const episode of this.#episodes.values()) episode.slot = null;
      decoder.load(this.#loaded, this.#weights);
    }
    const longest = (of: readonly Row[]) => Math.max(...of.map(({ episode }) => episode.ids.length));
    decoder.reserve(rows.filter(({ episode }) => episode.slot === null).length, longest(rows));
    const slots = rows.map(({ episode }) => {
      episode.slot ??= decoder.open();
      return episode.slot;
    });
    const waiting = (r: number) => (rows[r]?.episode.ids.length ?? 0) - decoder.length(slots[r] ?? 0);
    let live = [...rows.keys()];
    let T = Math.max(...live.map(waiting));
    while (live.length > 0) {
      const fed = live.map((r) => {
        const { episode, state } = rows[r] as Row;
        const slot = slots[r] ?? 0;
        const tokens = episode.ids.slice(decoder.length(slot), decoder.length(slot) + T);
        const samples = tokens.length === waiting(r);
        return { r, samples, step: { slot, tokens, state, uniform: samples && !greedy ? episode.random() : 0 } };
      });
      decoder.reserve(0, longest(rows));
      const drawn = decoder.step(fed.map(({ step }) => step));
      for (const [i, { r, samples }] of fed.entries()) {
        if (samples) this.#take(rows[r] as Row, drawn[i] as Sampled);
      }
      live = live.filter((r) => rows[r]?.done === false);
      T = Math.min(...live.map(waiting));
    }
  }

  #take(row: Row, { id, logprob }: Sampled): void {
    if (!Number.isFinite(logprob)) {
      throw new IsogymError(
        'BAD_LOGIT',
        `${row.request.episodeId}: expected finite logits, found a logprob ${logprob}`,
        {
          hint: 'the weights or the activations have overflowed: lower the learning rate or clip the gradient',
        },
      );
    }
    this.#extend(row, id, this.#options.greedy ? 0 : logprob);
  }

  #sample(row: Row, logits: Float32Array, offset: number): void {
    const { grammar, temperature, greedy } = this.#options;
    const allowed = grammar?.allowed(row.state) ?? this.#all;
    const { id, logprob } = greedy
      ? { id: greedyToken(logits, offset, allowed), logprob: 0 }
      : sampleToken(logits, offset, allowed, temperature, row.episode.random());
    this.#extend(row, id, logprob);
  }

  /** The token that was drawn, and after it every token about which there is no choice. */
  #extend(row: Row, drawn: number, drawnLogprob: number): void {
    const { grammar, greedy, tokenizer } = this.#options;
    for (let [id, logprob]: [number | undefined, number] = [drawn, drawnLogprob]; id !== undefined; logprob = 0) {
      row.sampled.push(id);
      row.logprobs.push(logprob);
      row.episode.ids.push(id);
      row.cutOff = id !== tokenizer.end && row.sampled.length === row.request.maxTokens;
      row.done = id === tokenizer.end || row.cutOff;
      if (row.done) return;
      if (grammar !== null) row.state = grammar.next(row.state, id);
      const allowed = grammar?.allowed(row.state) ?? this.#all;
      id = allowed.length === 1 ? allowed[0] : undefined;
      if (id !== undefined && !greedy) row.episode.random();
    }
  }

  #forget(episode: Episode): void {
    forget(episode);
    if (episode.slot !== null && this.#options.replay?.isLoaded(this.#loaded)) this.#options.replay.close(episode.slot);
    episode.slot = null;
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
