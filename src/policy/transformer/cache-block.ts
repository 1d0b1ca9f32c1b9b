/** @module Where keys and values are kept between steps: caches that rows share, and the places of rows in them. */
import * as tf from '@tensorflow/tfjs';
import type { TransformerConfig } from './config.ts';
import { tidy } from './custom-gradient.ts';
import type { KeyValueCache } from './decode.ts';

/** A cache that several rows share; it lives as long as one of them has its place there. */
export interface Block {
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

/** One user fewer; the last one's leaving disposes the cache. */
export function leave(block: Block): void {
  block.users--;
  if (block.users === 0) tf.dispose([...block.cache.keys, ...block.cache.values]);
}

/** The rows at `places`, one after the other, the tokens of each in columns 0, 1, …; undefined where there are none at all. */
export function gatherBlock(config: TransformerConfig, places: readonly (Place | null)[]): Block | undefined {
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
