/** @module One version of the weights ready to decode with, and batches of rows that decode together. */
import * as tf from '@tensorflow/tfjs';
import type { NamedTensors } from '../model.ts';
import { HIDDEN } from './attention.ts';
import { type Block, gatherBlock, leave, type Place } from './cache-block.ts';
import type { TransformerConfig } from './config.ts';
import { tidy } from './custom-gradient.ts';
import { decodeStep, type KeyValueCache, type TableTensors } from './decode.ts';
import { type PackedWeights, pack } from './pack.ts';
import { rotaryTables } from './rotary.ts';

/** The weights stay their owner's: they are only read while this is made. */
export class Decoder {
  readonly config: TransformerConfig;
  readonly packed: PackedWeights;
  #tables: TableTensors | undefined;

  constructor(config: TransformerConfig, weights: NamedTensors) {
    this.config = config;
    this.packed = tidy(() => {
      const clones = Object.fromEntries(Object.entries(weights).map(([name, w]) => [name, tf.clone(w)]));
      return pack(config, clones);
    });
    tf.keep(this.packed.embedding);
    tf.keep(this.packed.head);
    for (const layer of this.packed.layers) for (const matrix of Object.values(layer)) tf.keep(matrix);
  }

  /** Rotary tables for at least `length` positions; grows by doubling, so that shapes stay few. */
  tables(length: number): TableTensors {
    const found = this.#tables?.cos.shape[0] ?? 0;
    if (this.#tables === undefined || found < length) {
      tf.dispose(this.#tables === undefined ? [] : [this.#tables.cos, this.#tables.sin]);
      let size = Math.max(64, found);
      while (size < length) size *= 2;
      const { cos, sin } = rotaryTables(this.config, size);
      this.#tables = {
        cos: tf.keep(tf.tensor2d(cos, [size, cos.length / size])),
        sin: tf.keep(tf.tensor2d(sin, [size, sin.length / size])),
      };
    }
    return this.#tables;
  }

  dispose(): void {
    tf.dispose(this.packed as unknown as tf.TensorContainer);
    if (this.#tables !== undefined) tf.dispose([this.#tables.cos, this.#tables.sin]);
    this.#tables = undefined;
  }
}

/** One cache for all of its rows, and the bookkeeping of which columns are whose. */
export class DecodeBatch {
  readonly #decoder: Decoder;
  /** The columns of each row, in the order of its tokens. */
  #columns: number[][];
  /** None before the first token of all. */
  #block: Block | undefined;

  /** Row r goes on from `places[r]`, or begins where that is null. The places stay valid and their owner's. */
  constructor(decoder: Decoder, places: readonly (Place | null)[]) {
    this.#decoder = decoder;
    this.#columns = places.map((place) => Array.from(place?.columns ?? [], (_, i) => i));
    this.#block = gatherBlock(decoder.config, places);
  }

  /** Number of tokens that row `row` has been fed. */
  length(row: number): number {
    return this.#columns[row]?.length ?? 0;
  }

  /**
   * Feeds `chunks[r]` to row r, in one step of as many columns as the longest has tokens; a row with no tokens only waits.
   * @returns logits [R, V], row-major: of each row's last token; meaningless where it had none.
   */
  async feed(chunks: readonly (readonly number[])[]): Promise<Float32Array> {
    const T = Math.max(...chunks.map((chunk) => chunk.length));
    const { config, packed } = this.#decoder;
    const R = chunks.length;
    const C = this.#block?.columns ?? 0;
    const ids = new Int32Array(R * T);
    const positions = new Int32Array(R * T);
    const last = new Int32Array(R);
    const bias = new Float32Array(R * T * (C + T)).fill(HIDDEN);
    let furthest = 0;
    for (const [r, chunk] of chunks.entries()) {
      const columns = this.#columns[r] ?? [];
      last[r] = r * T + Math.max(0, chunk.length - 1);
      furthest = Math.max(furthest, columns.length + chunk.length);
      for (let t = 0; t < T; t++) {
        const row = (r * T + t) * (C + T);
        for (const column of columns) bias[row + column] = 0;
        // A padding token sees itself and what is before it as well: nothing sees the padding, and no sum is empty.
        bias.fill(0, row + C, row + C + t + 1);
      }
      for (const [t, id] of chunk.entries()) {
        ids[r * T + t] = id;
        positions[r * T + t] = columns.length + t;
      }
    }
    const tables = this.#decoder.tables(furthest);
    const { logits, cache } = tidy(() =>
      decodeStep(config, packed, tables, this.#block?.cache ?? null, {
        ids: tf.tensor2d(ids, [R, T], 'int32'),
        positions: tf.tensor2d(positions, [R, T], 'int32'),
        bias: tf.tensor4d(bias, [R, 1, T, C + T]),
        last: tf.tensor1d(last, 'int32'),
      }),
    );
    this.#grow(cache, C + T);
    for (const [r, chunk] of chunks.entries()) for (const t of chunk.keys()) this.#columns[r]?.push(C + t);
    try {
      return (await logits.data()) as Float32Array;
    } finally {
      logits.dispose();
    }
  }

  #grow(cache: KeyValueCache, columns: number): void {
    const block = this.#block;
    if (block === undefined) {
      this.#block = { cache, columns, users: 1 };
      return;
    }
    tf.dispose([...block.cache.keys, ...block.cache.values]);
    block.cache = cache;
    block.columns = columns;
  }

  /** Where row `row` is now; valid for good once the row is not fed any more. The taker must `leave` its block. */
  place(row: number): Place | null {
    if (this.#block === undefined) return null;
    this.#block.users++;
    return { block: this.#block, row, columns: this.#columns[row] ?? [] };
  }

  /** Goes on with these rows alone, in this order, in a cache of their own without columns that none of them uses. */
  keep(rows: readonly number[]): void {
    const block = this.#block;
    if (block === undefined) return;
    const places = rows.map((row) => ({ block, row, columns: this.#columns[row] ?? [] }));
    this.#block = gatherBlock(this.#decoder.config, places);
    this.#columns = places.map((place) => place.columns.map((_, i) => i));
    leave(block);
  }

  /** Ends the batch; what no place refers to is disposed. */
  end(): void {
    if (this.#block !== undefined) leave(this.#block);
    this.#block = undefined;
  }
}
