/** @module The cached pass: new tokens of every row, given the keys and values of what came before. No gradients. */
import * as tf from '@tensorflow/tfjs';
import { cachedAttention } from './attention.ts';
import { fusedWidth, type TransformerConfig } from './config.ts';
import { afterAttention } from './forward.ts';
import { normalise } from './norm.ts';
import type { PackedWeights } from './pack.ts';
import { rotate } from './rotary.ts';

/**
 * Keys (turned by their positions) and values of every layer, each [R·K, C, headWidth]. The C columns are shared by all rows: a
 * step appends its T columns to each, and what of them a row may see is the bias's business.
 */
export interface KeyValueCache {
  readonly keys: readonly tf.Tensor3D[];
  readonly values: readonly tf.Tensor3D[];
}

export interface DecodeInput {
  /** int32 [R, T]: the new tokens of each row, padded on the right. */
  readonly ids: tf.Tensor2D;
  /** int32 [R, T]: the place of each in its own row's text. */
  readonly positions: tf.Tensor2D;
  /** float32 [R, 1, T, C + T]: 0 where the column is visible to the new token, `HIDDEN` elsewhere. */
  readonly bias: tf.Tensor4D;
  /** int32 [R]: flat index r·T + t of each row's last token. */
  readonly last: tf.Tensor1D;
}

/** The rotary tables as tensors [P, fusedWidth], P above every position. */
export interface TableTensors {
  readonly cos: tf.Tensor2D;
  readonly sin: tf.Tensor2D;
}

/** Pure in its tensors. `cache` is null before the first step; the new one is made of new tensors, the old one is the caller's to dispose. */
export function decodeStep(
  config: TransformerConfig,
  packed: PackedWeights,
  tables: TableTensors,
  cache: KeyValueCache | null,
  input: DecodeInput,
): { readonly logits: tf.Tensor2D; readonly cache: KeyValueCache } {
  const [R, T] = input.ids.shape;
  const shape = [R, T, fusedWidth(config)];
  const positions = tf.reshape(input.positions, [R * T]);
  const cos = tf.reshape(tf.gather(tables.cos, positions), shape);
  const sin = tf.reshape(tf.gather(tables.sin, positions), shape);
  const keys: tf.Tensor3D[] = [];
  const values: tf.Tensor3D[] = [];
  let x: tf.Tensor = tf.gather<tf.Tensor>(packed.embedding, tf.reshape(input.ids, [R * T]));
  for (const [index, layer] of packed.layers.entries()) {
    const fused = tf.matMul(normalise(x, config.epsilon) as tf.Tensor2D, layer.fused);
    const turned = rotate(tf.reshape(fused, shape), cos, sin, config.headWidth);
    const [oldKeys, oldValues] = [cache?.keys[index], cache?.values[index]];
    const old = oldKeys === undefined || oldValues === undefined ? undefined : { keys: oldKeys, values: oldValues };
    const attended = cachedAttention(turned, old, input.bias, config);
    keys.push(attended.keys);
    values.push(attended.values);
    let context: tf.Tensor = attended.context;
    if (index === packed.layers.length - 1 && T > 1) {
      context = tf.gather(context, input.last);
      x = tf.gather(x, input.last);
    }
    x = afterAttention(layer, x, context, config.epsilon);
  }
  const logits: tf.Tensor2D = tf.matMul(normalise(x, config.epsilon) as tf.Tensor2D, packed.head);
  return { logits, cache: { keys, values } };
}
