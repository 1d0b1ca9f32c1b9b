/** @module RMSNorm without its weight (arXiv:1910.07467, equation 4); the weight is folded into the product that follows, see `pack.ts`. */
import * as tf from '@tensorflow/tfjs';
import { nth, withGradient } from './custom-gradient.ts';

/**
 * y = x / √(mean(x²) + ε) over the last axis; x [N, d].
 *
 * With r = 1/√(mean(x²) + ε): dx = r · (dy − y · mean(dy · y)).
 */
export function normalise(x: tf.Tensor, epsilon: number): tf.Tensor {
  return withGradient([x], ([x]) => {
    const r = tf.rsqrt(tf.add(tf.mean(tf.square(x as tf.Tensor), -1, true), epsilon));
    const y = tf.mul(x as tf.Tensor, r);
    return {
      value: y,
      saved: [y, r],
      gradient: (dy, saved) => {
        const y = nth(saved, 0);
        return [tf.mul(tf.sub(dy, tf.mul(y, tf.mean(tf.mul(dy, y), -1, true))), nth(saved, 1))];
      },
    };
  });
}
