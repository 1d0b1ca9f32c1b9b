/** @module Rows of a matrix by index, with a gradient of one operation; tf.gather's own transposes on the way. */
import * as tf from '@tensorflow/tfjs';
import { nth, withGradient } from './custom-gradient.ts';

/** Rows [N, d] of `matrix` [M, d] at `indices` int32 [N]. An index may occur more than once: the gradient adds up. */
export function gatherRows(matrix: tf.Tensor, indices: tf.Tensor1D): tf.Tensor {
  const rows = matrix.shape[0] as number;
  return withGradient([matrix], (inputs) => ({
    value: tf.gather(nth(inputs, 0), indices),
    saved: [indices],
    gradient: (dy, saved) => [tf.unsortedSegmentSum(dy, nth(saved, 0) as tf.Tensor1D, rows)],
  }));
}
