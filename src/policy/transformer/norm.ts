/** @module RMSNorm without its weight (arXiv:1910.07467, equation 4); the weight is folded into the product that follows, see `pack.ts`. */
import * as tf from '@tensorflow/tfjs';
import { ownKernel } from '../backends/own-kernel.ts';
import { nth, withGradient } from './custom-gradient.ts';

/**
 * y = x / √(mean(x²) + ε) over the last axis; x [N, d].
 *
 * With r = 1/√(mean(x²) + ε): dx = r · (dy − y · mean(dy · y)).
 */
export function normalise(x: tf.Tensor, epsilon: number): tf.Tensor {
  return withGradient([x], (inputs) => {
    const x = nth(inputs, 0);
    const [y, r] = ownKernel('RmsNorm', { x }, { epsilon }) ?? composed(x, epsilon);
    return {
      value: y as tf.Tensor,
      saved: [y as tf.Tensor, r as tf.Tensor],
      gradient: (dy, saved) => {
        const [y, r] = [nth(saved, 0), nth(saved, 1)];
        const dx = ownKernel('RmsNormGrad', { dy, y, r });
        return [dx?.[0] ?? tf.mul(tf.sub(dy, tf.mul(y, tf.mean(tf.mul(dy, y), -1, true))), r)];
      },
    };
  });
}

function composed(x: tf.Tensor, epsilon: number): readonly tf.Tensor[] {
  const r = tf.rsqrt(tf.add(tf.mean(tf.square(x), -1, true), epsilon));
  return [tf.mul(x, r), r];
}
