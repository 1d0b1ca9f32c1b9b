/** @module Rotary positions (arXiv:2104.09864) in Hugging Face's half-split convention: dimension j turns with dimension j + headWidth/2. */
import * as tf from '@tensorflow/tfjs';
import { ownKernel } from '../backends/own-kernel.ts';
import { fusedWidth, type TransformerConfig } from './config.ts';
import { nth, withGradient } from './custom-gradient.ts';

/** Row-major float32 [length, fusedWidth]: row p is for position p, columns as in the fused projection. */
export interface RotaryTables {
  readonly length: number;
  readonly cos: Float32Array;
  readonly sin: Float32Array;
}

/**
 * cos and sin of p · base^(−2j / headWidth) for positions p < `length`. The query columns carry the attention's factor
 * 1/√headWidth as well; the value columns hold 1 and 0, so that turning the whole fused projection leaves the values alone.
 */
export function rotaryTables(config: TransformerConfig, length: number): RotaryTables {
  const { headWidth, heads, kvHeads } = config;
  const columns = fusedWidth(config);
  const cos = new Float32Array(length * columns);
  const sin = new Float32Array(length * columns);
  const half = headWidth / 2;
  for (let p = 0; p < length; p++) {
    for (let column = 0; column < columns; column++) {
      const head = Math.floor(column / headWidth);
      const angle = p * config.ropeBase ** ((-2 * (column % half)) / headWidth);
      const scale = head < heads ? 1 / Math.sqrt(headWidth) : 1;
      const turns = head < heads + kvHeads;
      cos[p * columns + column] = turns ? scale * Math.cos(angle) : 1;
      sin[p * columns + column] = turns ? scale * Math.sin(angle) : 0;
    }
  }
  return { length, cos, sin };
}

/** y · Q = (−y₂, y₁) for y = (y₁, y₂) in halves: a quarter turn of every pair. Q is antisymmetric. Row-major [headWidth, headWidth]. */
function quarterTurn(headWidth: number): Float32Array {
  const half = headWidth / 2;
  const turn = new Float32Array(headWidth * headWidth);
  for (let j = 0; j < half; j++) {
    turn[(j + half) * headWidth + j] = -1;
    turn[j * headWidth + j + half] = 1;
  }
  return turn;
}

/**
 * y · cos + (y·Q) · sin, for y [.., fusedWidth] and tables of its shape, or of its last dimensions.
 *
 * As Qᵀ = −Q: dy = d · cos − (d · sin)·Q. The product with Q is cheaper on every backend than slicing halves out of every head.
 */
export function rotate(y: tf.Tensor, cos: tf.Tensor, sin: tf.Tensor, headWidth: number): tf.Tensor {
  const turn = (x: tf.Tensor): tf.Tensor => {
    const quarter = tf.tensor2d(quarterTurn(headWidth), [headWidth, headWidth]);
    return tf.reshape(tf.matMul(tf.reshape(x, [-1, headWidth]) as tf.Tensor2D, quarter), [-1, ...x.shape.slice(1)]);
  };
  const turnOwn = (x: tf.Tensor, cos: tf.Tensor, sin: tf.Tensor, backwards: boolean): tf.Tensor | undefined =>
    ownKernel('Rotate', { x, cos, sin }, { headWidth, backwards })?.[0];
  return withGradient([y], (inputs) => {
    const y = nth(inputs, 0);
    return {
      value: turnOwn(y, cos, sin, false) ?? tf.add(tf.mul(y, cos), tf.mul(turn(y), sin)),
      saved: [cos, sin],
      gradient: (dy, saved) => {
        const [cos, sin] = [nth(saved, 0), nth(saved, 1)];
        return [turnOwn(dy, cos, sin, true) ?? tf.sub(tf.mul(dy, cos), turn(tf.mul(dy, sin)))];
      },
    };
  });
}
