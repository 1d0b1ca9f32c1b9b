/** @module The full pass: rows of tokens to logits at the scored positions. Pure in its tensors, differentiable in the weights. */
import * as tf from '@tensorflow/tfjs';
import type { NamedTensors, TokenRows } from '../model.ts';
import { HIDDEN, selfAttention } from './attention.ts';
import { fusedWidth, type TransformerConfig } from './config.ts';
import { gatherRows } from './gather.ts';
import { normalise } from './norm.ts';
import { type PackedLayer, pack } from './pack.ts';
import { type RotaryTables, rotate } from './rotary.ts';
import { swiglu } from './swiglu.ts';

/**
 * Logits [N, V] at `rows.scored`. Rows are padded on the right, so the causal mask alone keeps the padding from what is before it.
 * After the last layer's attention only the scored positions are carried on: what follows works on each position by itself.
 * @param tables for at least T positions.
 */
export function forward(
  config: TransformerConfig,
  weights: NamedTensors,
  { ids, scored }: TokenRows,
  tables: RotaryTables,
): tf.Tensor2D {
  const [B, T] = ids.shape;
  const packed = pack(config, weights);
  const columns = fusedWidth(config);
  const cos = tf.tensor2d(tables.cos.subarray(0, T * columns), [T, columns]);
  const sin = tf.tensor2d(tables.sin.subarray(0, T * columns), [T, columns]);
  const bias = tf.tensor2d(causalBias(T), [T, T]);
  let x = gatherRows(packed.embedding, tf.reshape(ids, [B * T]));
  for (const [index, layer] of packed.layers.entries()) {
    const fused = tf.matMul(normalise(x, config.epsilon) as tf.Tensor2D, layer.fused);
    const turned = rotate(tf.reshape(fused, [B, T, columns]), cos, sin, config.headWidth);
    let context: tf.Tensor = selfAttention(turned, bias, config);
    if (index === packed.layers.length - 1) {
      context = gatherRows(context, scored);
      x = gatherRows(x, scored);
    }
    x = afterAttention(layer, x, context, config.epsilon);
  }
  return tf.matMul(normalise(x, config.epsilon) as tf.Tensor2D, packed.head);
}

/** The rest of a layer, position by position: the attention's output projection and the SwiGLU block, each added to the residual stream [N, d]. */
export function afterAttention(layer: PackedLayer, x: tf.Tensor, context: tf.Tensor, epsilon: number): tf.Tensor {
  const attended = tf.add(x, tf.matMul(context as tf.Tensor2D, layer.output));
  const normed = normalise(attended, epsilon) as tf.Tensor2D;
  const inner = swiglu(tf.matMul(normed, layer.gate), tf.matMul(normed, layer.up)) as tf.Tensor2D;
  return tf.add(attended, tf.matMul(inner, layer.down));
}

/** Row-major [T, T]: 0 where column ≤ row. */
function causalBias(T: number): Float32Array {
  const bias = new Float32Array(T * T);
  for (let t = 0; t < T; t++) bias.fill(HIDDEN, t * T + t + 1, (t + 1) * T);
  return bias;
}
