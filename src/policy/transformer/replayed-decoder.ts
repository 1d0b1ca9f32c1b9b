/** @module Decoding as recorded graphs, on `native` and `cuda`: weights, caches and the grammar's table live in a session; tokens and logprobs come out. */
import * as tf from '@tensorflow/tfjs';
import { IsogymError } from '../../records/errors.ts';
import type { Grammar } from '../grammar/index.ts';
import type { NamedTensors } from '../model.ts';
import { Session } from '../replay/session.ts';
import type { TransformerConfig } from './config.ts';
import { tidy } from './custom-gradient.ts';
import { GrammarTable } from './grammar-table.ts';
import { pack } from './pack.ts';
import { byName, packedNames, packedOf } from './packed-names.ts';
import { rotaryTables } from './rotary.ts';
import { type SampledInput, sampledStep } from './sampled-step.ts';
import { type StepRow, stepFeeds } from './step-feeds.ts';

export interface ReplayedDecoderOptions {
  readonly config: TransformerConfig;
  /** Null: every id may follow every other. */
  readonly grammar: Grammar | null;
  /** T > 0; null takes the most likely token. */
  readonly temperature: number | null;
}

export interface Sampled {
  readonly id: number;
  readonly logprob: number;
}

const FEWEST_COLUMNS = 32;

/**
 * Keeps a slot of C columns for each text. A slot's last column is scratch: padding is written there and never seen. It is one
 * decoder for many versions of the weights: nothing is recorded again when they change.
 */
export class ReplayedDecoder {
  readonly #options: ReplayedDecoderOptions;
  #session: Session | undefined;
  #columns = FEWEST_COLUMNS;
  /** Tokens in each slot; undefined where it is free. */
  #slots: (number | undefined)[] = [];
  /** Whose weights are loaded. */
  #owner: object | undefined;
  readonly #table: GrammarTable;
  /** Rows of the table that the session has. */
  #tableKnown = 0;
  #recorded = 0;
  /** That steps were asked to feed, and were given with the padding. */
  #tokens = { fed: 0, given: 0 };

  constructor(options: ReplayedDecoderOptions) {
    this.#options = options;
    this.#table = new GrammarTable(options.grammar, options.config.vocabulary);
  }

  /** How many functions were recorded so far. */
  get recordings(): number {
    return this.#recorded + (this.#session?.recordings ?? 0);
  }

  /** Tokens that all steps so far were asked to feed, and those that they were given: also rows in between, and up to a power of two. */
  get tokens(): { readonly fed: number; readonly given: number } {
    return this.#tokens;
  }

  /** Loads weights; slots that were opened under others are freed. They are only read here. */
  load(owner: object, weights: NamedTensors): void {
    if (this.#owner === owner) return;
    this.#owner = owner;
    this.#slots = this.#slots.map(() => undefined);
    tidy(() => {
      const values = byName(pack(this.#options.config, weights));
      if (this.#session === undefined) this.#begin(values);
      else this.#session.write(values);
    });
  }

  isLoaded(owner: object): boolean {
    return this.#owner === owner;
  }

  /** Makes room for `more` slots beside those in use, of `length` tokens each. Fewer slots than before where none is in use. */
  reserve(more: number, length: number): void {
    const used = this.#slots.filter((tokens) => tokens !== undefined).length;
    if (used === 0) {
      if (this.#slots.length !== more) this.#resize(Array(more).fill(undefined), []);
    } else if (used + more > this.#slots.length) {
      const size = Math.max(used + more, Math.ceil(1.5 * this.#slots.length));
      const from = this.#slots.map((_, slot) => slot);
      this.#resize([...this.#slots, ...Array(size - this.#slots.length).fill(undefined)], from);
    }
    if (length + 1 > this.#columns) this.#widen(length + 1);
  }

  /** A free slot, empty. */
  open(): number {
    const slot = this.#slots.indexOf(undefined);
    if (slot < 0) throw new IsogymError('INTERNAL', 'expected a free slot: reserve first');
    this.#slots[slot] = 0;
    return slot;
  }

  close(slot: number): void {
    this.#slots[slot] = undefined;
  }

  /** Tokens that a slot has been fed. */
  length(slot: number): number {
    return this.#slots[slot] ?? 0;
  }

  /**
   * Feeds every row its tokens and draws the next one of each, in one call.
   * @returns as `rows`; meaningless where a row was fed nothing
   */
  step(rows: readonly StepRow[]): readonly Sampled[] {
    const T = 2 ** Math.ceil(Math.log2(Math.max(...rows.map(({ tokens }) => tokens.length))));
    for (const { state } of rows) this.#table.meet(state);
    this.#writeTable();
    // Half the slots or more: all of them, which saves gathering the caches.
    const whole = 2 * rows.length >= this.#slots.length;
    const places = whole ? this.#slots.map((_, slot) => slot) : rows.map(({ slot }) => slot);
    const session = this.#session as Session;
    const out = tf.tidy(() => {
      const feeds = stepFeeds(rows, {
        tokens: T,
        columns: this.#columns,
        kvHeads: this.#options.config.kvHeads,
        places,
        whole,
        lengthOf: (slot) => this.length(slot),
        tableRow: (state) => this.#table.row(state),
      });
      const name = `${whole ? 'all' : 'some'} ${T}`;
      if (!session.has(name)) this.#define(session, name, feeds, T);
      return session.run(name, feeds).result?.dataSync() as Float32Array;
    });
    const { fed, given } = this.#tokens;
    const added = rows.reduce((sum, { tokens }) => sum + tokens.length, 0);
    this.#tokens = { fed: fed + added, given: given + places.length * T };
    for (const { slot, tokens } of rows) this.#slots[slot] = (this.#slots[slot] ?? 0) + tokens.length;
    return rows.map(({ slot }, r) => {
      const at = whole ? slot : r;
      return { id: out[at] ?? Number.NaN, logprob: out[places.length + at] ?? Number.NaN };
    });
  }

  /** Frees everything; `load` begins anew. */
  dispose(): void {
    this.#recorded = this.recordings;
    this.#session?.dispose();
    this.#session = undefined;
    this.#owner = undefined;
    this.#slots = [];
    this.#tableKnown = 0;
  }

  #begin(weights: NamedTensors): void {
    const session = new Session();
    session.declare(weights);
    const table = tf.zeros([1, this.#options.config.vocabulary]);
    session.declare({ table }, { anyShape: true });
    session.declare(Object.fromEntries(this.#cacheNames().map((name) => [name, this.#emptyCache(1)])), {
      anyShape: true,
    });
    this.#session = session;
    this.#slots = [undefined];
  }

  /** More columns: another graph, with the caches carried over. */
  #widen(atLeast: number): void {
    const old = this.#session as Session;
    const before = this.#columns;
    while (this.#columns < atLeast) this.#columns *= 2;
    const { headWidth } = this.#options.config;
    const session = new Session();
    tf.tidy(() => {
      const { layers } = this.#options.config;
      const weights = old.read(packedNames(layers));
      session.declare(weights);
      session.declare(old.read(['table']), { anyShape: true });
      const caches = Object.entries(old.read(this.#cacheNames())).map(([name, cache]) => {
        const padding: [number, number][] = [
          [0, 0],
          [0, this.#columns - before],
          [0, 0],
        ];
        const wide = tf.pad(tf.reshape(cache, [-1, before, headWidth]), padding);
        return [name, tf.reshape(wide, [-1, headWidth])] as const;
      });
      session.declare(Object.fromEntries(caches), { anyShape: true });
    });
    this.#recorded += old.recordings;
    old.dispose();
    this.#session = session;
  }

  /** Other slots, the first of them with what `from` held. */
  #resize(slots: (number | undefined)[], from: readonly number[]): void {
    const { kvHeads, headWidth } = this.#options.config;
    const session = this.#session as Session;
    tf.tidy(() => {
      const size = kvHeads * this.#columns * headWidth;
      const old = from.length > 0 ? session.read(this.#cacheNames()) : {};
      const caches = this.#cacheNames().map((name) => {
        const cache = (old as Record<string, tf.Tensor>)[name];
        if (cache === undefined) return [name, this.#emptyCache(slots.length)] as const;
        const rows = tf.reshape(cache, [-1, size]);
        return [
          name,
          tf.reshape(
            tf.pad(rows, [
              [0, slots.length - from.length],
              [0, 0],
            ]),
            [-1, headWidth],
          ),
        ] as const;
      });
      session.write(Object.fromEntries(caches));
    });
    this.#slots = slots;
  }

  #emptyCache(slots: number): tf.Tensor {
    const { kvHeads, headWidth } = this.#options.config;
    return tf.zeros([slots * kvHeads * this.#columns, headWidth]);
  }

  #cacheNames(): string[] {
    return Array.from({ length: this.#options.config.layers }, (_, i) => [`keys/${i}`, `values/${i}`]).flat();
  }

  #writeTable(): void {
    const { states } = this.#table;
    if (this.#tableKnown === states) return;
    const table = this.#table.values();
    tf.tidy(() => this.#session?.write({ table: tf.tensor2d(table, [states, this.#options.config.vocabulary]) }));
    this.#tableKnown = states;
  }

  #define(session: Session, name: string, feeds: NamedTensors, T: number): void {
    const { config, temperature } = this.#options;
    const rotary = rotaryTables(config, this.#columns);
    session.define(
      name,
      feeds,
      ({ read, overwrite }) => ({
        outputs: {
          result: sampledStep(
            {
              config,
              packed: packedOf(config.layers, read),
              table: read('table') as tf.Tensor2D,
              columns: this.#columns,
              tokens: T,
              rotary,
              temperature,
              store: (cache, layer, at, rows) => overwrite(`${cache}/${layer}`, at, rows),
            },
            feeds as unknown as SampledInput,
          ),
        },
      }),
      { anyRows: true },
    );
  }
}
