/** @module Batches of rows that decode together: one cache for all of them, and the bookkeeping of which columns are whose. */
import * as tf from '@tensorflow/tfjs';
import type { NamedTensors } from '../model.ts';
import { HIDDEN } from './attention.ts';
import type { TransformerConfig } from './config.ts';
import { tidy } from './custom-gradient.ts';
import { decodeStep, type KeyValueCache, type TableTensors } from './decode.ts';
import { type PackedWeights, pack } from './pack.ts';
import { rotaryTables } from './rotary.ts';

/** A cache that several rows share; it lives as long as one of them has its place there. */
interface Block {
  cache: KeyValueCache;
  /** C. */
  columns: number;
  /** Places in it, and 1 while a batch decodes in it. */
  users: number;
}

/** Where the keys and values of a row's tokens are, in the order of the tokens. */
export interface Place {
  readonly block: Block;
  readonly row: number;
  readonly columns: readonly number[];
}

function leave(block: Block): void {
  block.users--;
  if (block.users === 0) tf.dispose([...block.cache.keys, ...block.cache.values]);
}

/** Gives a place up; its cache is disposed with its last place. */
export function leavePlace(place: Place): void {
  leave(place.block);
}

/** One version of the weights, packed for decoding. The weights stay their owner's: they are only read while this is made. */
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

  /** Where row `row` is now; valid for good once the row is not fed any more. The taker must `leavePlace`. */
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

/** The rows at `places`, one after the other, the tokens of each in columns 0, 1, …; undefined where there are none at all. */
function gatherBlock(config: TransformerConfig, places: readonly (Place | null)[]): Block | undefined {
  const columns = Math.max(...places.map((place) => place?.columns.length ?? 0));
  if (columns === 0) return undefined;
  const { kvHeads, headWidth, layers } = config;
  const firstRow = new Map<Block, number>();
  let rows = 0;
  for (const place of places) {
    if (place === null || firstRow.has(place.block)) continue;
    firstRow.set(place.block, rows);
    rows += (place.block.cache.keys[0]?.shape[0] ?? 0) * place.block.columns;
  }
  // Columns beyond a row's tokens repeat some row: the bias hides them.
  const indices = new Int32Array(places.length * kvHeads * columns);
  for (const [r, place] of places.entries()) {
    if (place === null) continue;
    for (let head = 0; head < kvHeads; head++) {
      const from = (firstRow.get(place.block) ?? 0) + (place.row * kvHeads + head) * place.block.columns;
      const to = (r * kvHeads + head) * columns;
      for (const [i, column] of place.columns.entries()) indices[to + i] = from + column;
    }
  }
  const blocks = [...firstRow.keys()];
  const cache = tidy(() => {
    const index = tf.tensor1d(indices, 'int32');
    const gather = (part: 'keys' | 'values'): tf.Tensor3D[] =>
      Array.from({ length: layers }, (_, layer) => {
        const flat = blocks.map((block) => tf.reshape(block.cache[part][layer] as tf.Tensor, [-1, headWidth]));
        const all = tf.concat(flat as tf.Tensor2D[], 0);
        return tf.reshape(tf.gather(all, index), [places.length * kvHeads, columns, headWidth]);
      });
    return { keys: gather('keys'), values: gather('values') };
  });
  return { cache, columns, users: 1 };
}
