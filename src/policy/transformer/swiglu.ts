/** @module SwiGLU (arXiv:2002.05202, equation 6), between the projections. */
import * as tf from '@tensorflow/tfjs';
import { nth, withGradient } from './custom-gradient.ts';

/**
 * silu(gate) · up, with silu(g) = g · σ(g); both [N, hidden].
 *
 * silu′(g) = σ(g) + silu(g) · (1 − σ(g)).
 */
export function swiglu(gate: tf.Tensor, up: tf.Tensor): tf.Tensor {
  return withGradient([gate, up], (inputs) => {
    const gate = nth(inputs, 0);
    const up = nth(inputs, 1);
    const sigmoid = tf.sigmoid(gate);
    const silu = tf.mul(gate, sigmoid);
    return {
      value: tf.mul(silu, up),
      saved: [sigmoid, silu, up],
      gradient: (dy, saved) => {
        const [sigmoid, silu, up] = [nth(saved, 0), nth(saved, 1), nth(saved, 2)];
        const slope = tf.add(sigmoid, tf.mul(silu, tf.sub(1, sigmoid)));
        return [tf.mul(tf.mul(dy, up), slope), tf.mul(dy, silu)];
      },
    };
  });
}
