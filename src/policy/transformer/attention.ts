/** @module Scaled dot-product attention with grouped queries, without projections; the scale is in the rotary tables. */
import * as tf from '@tensorflow/tfjs';
import { ownKernel } from '../backends/own-kernel.ts';
import type { TransformerConfig } from './config.ts';
import { nth, withGradient } from './custom-gradient.ts';

/** What is added to the score of a column that must not be seen: finite, so that a row which sees nothing is uniform and not NaN. */
export const HIDDEN = -1e9;

type Heads = Pick<TransformerConfig, 'heads' | 'kvHeads' | 'headWidth'>;

/**
 * The fused projection [B, T, fusedWidth] as queries [B·K, (H/K)·T, headWidth] and keys and values [B·K, T, headWidth]. Query
 * heads h with equal ⌊h·K/H⌋ share a key head, so that they are just more rows of one product.
 */
export function splitHeads(
  fused: tf.Tensor,
  { heads, kvHeads, headWidth }: Heads,
): [tf.Tensor3D, tf.Tensor3D, tf.Tensor3D] {
  const [B = 0, T = 0] = fused.shape;
  const all = heads + 2 * kvHeads;
  const byHead = tf.transpose(tf.reshape(fused, [B, T, all, headWidth]), [0, 2, 1, 3]);
  // In two dimensions each row is one copy.
  const flat = tf.reshape(byHead, [B, all * T * headWidth]) as tf.Tensor2D;
  const size = T * headWidth;
  const part = (from: number, count: number): tf.Tensor3D =>
    tf.reshape(tf.slice(flat, [0, from * size], [B, count * size]), [B * kvHeads, (count / kvHeads) * T, headWidth]);
  return [part(0, heads), part(heads, kvHeads), part(heads + kvHeads, kvHeads)];
}

/** The inverse of `splitHeads`. */
function joinHeads(parts: readonly tf.Tensor[], B: number, T: number, headWidth: number): tf.Tensor {
  const flat = tf.concat(
    parts.map((part) => tf.reshape(part, [B, -1]) as tf.Tensor2D),
    1,
  );
  const heads = (flat.shape[1] as number) / (T * headWidth);
  return tf.reshape(tf.transpose(tf.reshape(flat, [B, heads, T, headWidth]), [0, 2, 1, 3]), [B, T, heads * headWidth]);
}

/** softmax(q·kᵀ + bias) as [B·K, (H/K)·T, S]; `bias` broadcasts to [B, H, T, S]. */
export function attentionWeights(
  q: tf.Tensor3D,
  k: tf.Tensor3D,
  bias: tf.Tensor,
  { heads, kvHeads }: Heads,
): tf.Tensor3D {
  const B = q.shape[0] / kvHeads;
  const T = (q.shape[1] * kvHeads) / heads;
  const scores = tf.reshape(tf.matMul(q, k, false, true), [B, heads, T, k.shape[1]]);
  return tf.reshape(tf.softmax(tf.add(scores, bias)), [q.shape[0], q.shape[1], k.shape[1]]);
}

/**
 * Attention of new tokens over a cache, to which theirs are appended: turned fused projection [R, T, fusedWidth], keys and values
 * [R·K, C, headWidth] or none, and a bias [R, 1, T, C + T] → context [R·T, H·headWidth] and the caches with T columns more. No gradient.
 */
export function cachedAttention(
  fused: tf.Tensor,
  cache: { readonly keys: tf.Tensor3D; readonly values: tf.Tensor3D } | undefined,
  bias: tf.Tensor4D,
  { heads, kvHeads, headWidth }: Heads,
): { readonly context: tf.Tensor2D; readonly keys: tf.Tensor3D; readonly values: tf.Tensor3D } {
  const sizes = { heads, kvHeads, headWidth };
  const own = ownKernel('CachedAttention', { fused, bias, ...cache }, sizes);
  if (own !== undefined) {
    const [context, keys, values] = own as [tf.Tensor2D, tf.Tensor3D, tf.Tensor3D];
    return { context, keys, values };
  }
  const [q, newKeys, newValues] = splitHeads(fused, sizes);
  const keys = cache === undefined ? newKeys : tf.concat([cache.keys, newKeys], 1);
  const values = cache === undefined ? newValues : tf.concat([cache.values, newValues], 1);
  const context = mergeHeads(tf.matMul(attentionWeights(q, keys, bias, sizes), values), sizes);
  return { context, keys, values };
}

/** Attended values [B·K, (H/K)·T, headWidth] → [B·T, H·headWidth]. */
export function mergeHeads(context: tf.Tensor3D, { heads, kvHeads, headWidth }: Heads): tf.Tensor2D {
  const B = context.shape[0] / kvHeads;
  const T = (context.shape[1] * kvHeads) / heads;
  return tf.reshape(joinHeads([context], B, T, headWidth), [B * T, heads * headWidth]);
}

/**
 * Attention of a batch over itself: turned fused projection [B, T, fusedWidth] and bias [T, T] → [B·T, H·headWidth].
 *
 * With P = softmax(q·kᵀ + bias), O = P·v: dv = Pᵀ·dO, dP = dO·vᵀ, dS = P ∘ (dP − rowsum(P ∘ dP)), dq = dS·k, dk = dSᵀ·q.
 */
export function selfAttention(
  fused: tf.Tensor,
  bias: tf.Tensor2D,
  { heads: h, kvHeads, headWidth }: Heads,
): tf.Tensor2D {
  const [B = 0, T = 0] = fused.shape;
  const heads = { heads: h, kvHeads, headWidth };
  return withGradient([fused], (inputs) => {
    const [value, weights] = ownKernel('SelfAttention', { fused: nth(inputs, 0), bias }, heads) ?? [];
    if (value !== undefined && weights !== undefined) {
      return {
        value,
        saved: [nth(inputs, 0), weights, bias],
        gradient: (dy, saved) => {
          const [fused, p, bias] = [nth(saved, 0), nth(saved, 1), nth(saved, 2)];
          return [...(ownKernel('SelfAttentionGrad', { dy, fused, p, bias }, heads) ?? [])];
        },
      };
    }
    const [q, k, v] = splitHeads(nth(inputs, 0), heads);
    const p = attentionWeights(q, k, bias, heads);
    return {
      value: mergeHeads(tf.matMul(p, v), heads),
      saved: [q, k, v, p],
      gradient: (dy, saved) => {
        const [q, k, v, p] = saved as [tf.Tensor3D, tf.Tensor3D, tf.Tensor3D, tf.Tensor3D];
        const byHead = tf.transpose(tf.reshape(dy, [B, T, heads.heads, heads.headWidth]), [0, 2, 1, 3]);
        const d = tf.reshape(byHead, q.shape) as tf.Tensor3D;
        const dv = tf.matMul(p, d, true, false);
        const dp = tf.matMul(d, v, false, true);
        const ds = tf.mul(p, tf.sub(dp, tf.sum(tf.mul(p, dp), -1, true))) as tf.Tensor3D;
        const dq = tf.matMul(ds, k);
        const dk = tf.matMul(ds, q, true, false);
        return [joinHeads([dq, dk, dv], B, T, heads.headWidth)];
      },
    };
  }) as tf.Tensor2D;
}
