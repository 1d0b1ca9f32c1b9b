/** @module One action being written: its episode, the tokens so far, and how the next is drawn under the grammar. Knows no tensor. */
import { IsogymError } from '../records/errors.ts';
import type { Random } from '../records/random.ts';
import type { Grammar } from './grammar/index.ts';
import { greedyToken, sampleToken } from './sampling.ts';
import type { TokenRequest } from './token-policy.ts';
import type { Tokenizer } from './tokenizer.ts';
import type { Place } from './transformer/cache-block.ts';

/** What is kept of an episode between its requests. */
export interface KeptEpisode {
  /** Everything said so far, given and sampled. */
  readonly ids: number[];
  readonly random: Random;
  /** The cache of the first `place.columns.length` of the ids; null where there is none. */
  place: Place | null;
  /** The same where decoding is replayed: its slot. */
  slot: number | null;
}

/** One request being answered. */
export interface Row {
  readonly request: TokenRequest;
  readonly episode: KeptEpisode;
  readonly sampled: number[];
  readonly logprobs: number[];
  /** Of the grammar. */
  state: number;
  /** Its action is finished, or its episode was released. */
  done: boolean;
  /** Nothing is kept for its episode any more. */
  released: boolean;
  cutOff: boolean;
}

export interface DrawOptions {
  /** Null: every id may follow every other. */
  readonly grammar: Grammar | null;
  readonly tokenizer: Pick<Tokenizer, 'size' | 'end'>;
  /** T > 0; not used where `greedy`. */
  readonly temperature: number;
  readonly greedy: boolean;
}

/**
 * A token about which the grammar leaves no choice has logprob 0 and takes one uniform like every other, but waits for no tick:
 * it is fed when its row needs the next real choice.
 */
export class Draw {
  readonly #options: DrawOptions;
  readonly #all: Int32Array;

  constructor(options: DrawOptions) {
    this.#options = options;
    this.#all = Int32Array.from({ length: options.tokenizer.size }, (_, id) => id);
  }

  get start(): number {
    return this.#options.grammar?.start ?? 0;
  }

  /** The row's next uniform; greedily, none is taken. */
  uniform({ episode }: Row): number {
    return this.#options.greedy ? 0 : episode.random();
  }

  /** Draws from the logits at `offset`. @throws BAD_LOGIT */
  fromLogits(row: Row, logits: Float32Array, offset: number): void {
    const { grammar, temperature, greedy } = this.#options;
    const allowed = grammar?.allowed(row.state) ?? this.#all;
    const { id, logprob } = greedy
      ? { id: greedyToken(logits, offset, allowed), logprob: 0 }
      : sampleToken(logits, offset, allowed, temperature, this.uniform(row));
    this.#extend(row, id, logprob);
  }

  /** Takes what was drawn elsewhere. @throws BAD_LOGIT */
  take(row: Row, { id, logprob }: { readonly id: number; readonly logprob: number }): void {
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

  /** The token that was drawn, and after it every token about which there is no choice. */
  #extend(row: Row, drawn: number, drawnLogprob: number): void {
    const { grammar, tokenizer } = this.#options;
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
      if (id !== undefined) this.uniform(row);
    }
  }
}
