/**
 * @module The decode step as it is recorded: the caches in place, the sampling inside. The same computation as `decode.ts` and
 * `sampling.ts`, to rounding. Shapes but for T and C are left open (−1), so that one recording serves any number of rows.
 */
import * as tf from '@tensorflow/tfjs';
import { HIDDEN } from './attention.ts';
import type { TransformerConfig } from './config.ts';
import { afterAttention } from './forward.ts';
import { normalise } from './norm.ts';
import type { PackedWeights } from './pack.ts';
import { type RotaryTables, rotate } from './rotary.ts';

/** What a step is fed. */
export interface SampledInput {
  /** int32 [B·T]: T tokens of each row, padded on the right. */
  readonly ids: tf.Tensor1D;
  /** int32 [B·T]: the place of each in its own row's text; it sees the columns up to there. */
  readonly positions: tf.Tensor1D;
  /** int32 [B·K·T]: where in the caches, as [slots·K·C, headWidth], its key and value go, by row, head and token. */
  readonly write: tf.Tensor1D;
  /** int32 [B]: flat index b·T + t of each row's last token. */
  readonly last: tf.Tensor1D;
  /** int32 [B]: each row's slot. Absent where the rows are the slots, all of them and in order, and nothing need be gathered. */
  readonly slots: tf.Tensor1D | undefined;
  /** int32 [B]: each row's row of `table`. */
  readonly states: tf.Tensor1D;
  /** [B], each in [0, 1). */
  readonly uniforms: tf.Tensor1D;
}

export interface SampledSetting {
  readonly config: TransformerConfig;
  readonly packed: PackedWeights;
  /** [S, V]: 0 where a token is allowed, below 0 where it is not. */
  readonly table: tf.Tensor2D;
  /** C: columns of a slot. */
  readonly columns: number;
  /** T */
  readonly tokens: number;
  readonly rotary: RotaryTables;
  /** T > 0; null takes the most likely token. */
  readonly temperature: number | null;
  /** Writes rows [B·K·T, headWidth] into a cache and gives it as [slots·K·C, headWidth]. */
  readonly store: (cache: 'keys' | 'values', layer: number, at: tf.Tensor1D, rows: tf.Tensor) => tf.Tensor;
}

/** [2, B]: the token of each row, and its logprob [nats]; NaN where a logit overflows. */
export function sampledStep(setting: SampledSetting, input: SampledInput): tf.Tensor2D {
  const { config, packed, columns: C, tokens: T } = setting;
  const { heads, kvHeads, headWidth } = config;
  const cos = tf.gather(tableOf(setting.rotary, setting.rotary.cos, C), input.positions);
  const sin = tf.gather(tableOf(setting.rotary, setting.rotary.sin, C), input.positions);
  const bias = tf.reshape(tf.gather(visible(C), input.positions), T === 1 ? [-1, 1, C] : [-1, 1, T, C]);
  let x: tf.Tensor = tf.gather<tf.Tensor>(packed.embedding, input.ids);
  for (const [index, layer] of packed.layers.entries()) {
    const fused = tf.matMul(normalise(x, config.epsilon) as tf.Tensor2D, layer.fused);
    const [q, newKeys, newValues] = split(rotate(fused, cos, sin, headWidth), config, T);
    const cached = (cache: 'keys' | 'values', rows: tf.Tensor): tf.Tensor3D => {
      const all = setting.store(cache, index, input.write, rows);
      if (input.slots === undefined) return tf.reshape(all, [-1, C, headWidth]);
      return tf.reshape(tf.gather(tf.reshape(all, [-1, kvHeads * C * headWidth]), input.slots), [-1, C, headWidth]);
    };
    const keys = cached('keys', newKeys);
    const values = cached('values', newValues);
    const scores = tf.reshape(tf.matMul(q, keys, false, true), T === 1 ? [-1, heads, C] : [-1, heads, T, C]);
    const p = tf.reshape(tf.softmax(tf.add(scores, bias)), [-1, (heads / kvHeads) * T, C]) as tf.Tensor3D;
    let context = merge(tf.matMul(p, values), config, T);
    if (index === packed.layers.length - 1 && T > 1) {
      context = tf.gather(context, input.last);
      x = tf.gather(x, input.last);
    }
    x = afterAttention(layer, x, context, config.epsilon);
  }
  const logits: tf.Tensor2D = tf.matMul(normalise(x, config.epsilon) as tf.Tensor2D, packed.head);
  return draw(logits, tf.gather(setting.table, input.states), input.uniforms, setting.temperature);
}

/**
 * As `sampleToken`: the first allowed token whose cumulative probability is greater than the uniform. Rounding may push the threshold
 * up to the total; the last token of positive probability then has it.
 */
function draw(logits: tf.Tensor2D, mask: tf.Tensor2D, uniforms: tf.Tensor1D, temperature: number | null): tf.Tensor2D {
  const allowed = tf.where(tf.less(mask, 0), mask, logits);
  const relative = tf.div(tf.sub(allowed, tf.max(allowed, 1, true)), temperature ?? 1);
  const weights = tf.exp(relative);
  const cumulative = tf.cumsum(weights, 1);
  const total = tf.max(cumulative, 1, true);
  const threshold = tf.mul(tf.reshape(uniforms, [-1, 1]), total);
  const reached = tf.logicalOr(tf.greater(cumulative, threshold), tf.greaterEqual(cumulative, total));
  const ids = temperature === null ? tf.argMax(allowed, 1) : tf.argMax(tf.cast(reached, 'int32'), 1);
  const own = tf.gather(relative, tf.reshape(ids, [-1, 1]) as tf.Tensor2D, 1, 1);
  const logprobs = tf.sub(own, tf.log(total));
  return tf.stack([tf.cast(ids, 'float32'), tf.reshape(logprobs, [-1])]) as tf.Tensor2D;
}

/** Rows [B·T, fusedWidth] as queries [B·K, (H/K)·T, headWidth], and keys and values [B·K·T, headWidth]. */
function split(
  fused: tf.Tensor,
  { heads, kvHeads, headWidth }: TransformerConfig,
  T: number,
): [tf.Tensor3D, tf.Tensor, tf.Tensor] {
  const counts = [heads, kvHeads, kvHeads];
  const [q, k, v] = (
    T === 1
      ? tf.split(
          fused,
          counts.map((n) => n * headWidth),
          1,
        )
      : tf.split(tf.transpose(tf.reshape(fused, [-1, T, heads + 2 * kvHeads, headWidth]), [0, 2, 1, 3]), counts, 1)
  ) as [tf.Tensor, tf.Tensor, tf.Tensor];
  return [
    tf.reshape(q, [-1, (heads / kvHeads) * T, headWidth]),
    tf.reshape(k, [-1, headWidth]),
    tf.reshape(v, [-1, headWidth]),
  ];
}

/** [B·K, (H/K)·T, headWidth] → [B·T, H·headWidth]. */
function merge(context: tf.Tensor, { heads, headWidth }: TransformerConfig, T: number): tf.Tensor {
  const byToken = T === 1 ? context : tf.transpose(tf.reshape(context, [-1, heads, T, headWidth]), [0, 2, 1, 3]);
  return tf.reshape(byToken, [-1, heads * headWidth]);
}

function tableOf({ length }: RotaryTables, values: Float32Array, rows: number): tf.Tensor2D {
  const columns = values.length / length;
  return tf.tensor2d(values.subarray(0, rows * columns), [rows, columns]);
}

/** [C, C]: row p is what a token at position p adds to the score of each column. */
function visible(C: number): tf.Tensor2D {
  const bias = new Float32Array(C * C).fill(HIDDEN);
  for (let p = 0; p < C; p++) bias.fill(0, p * C, p * C + p + 1);
  return tf.tensor2d(bias, [C, C]);
}
