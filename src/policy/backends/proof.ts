/** @module The proof that a backend computes: one small product, a gather, and their gradients, against figures worked out by hand. */
import type * as Tf from '@tensorflow/tfjs';
import { Unavailable } from './backend.ts';

/** loss = Σ (A·W[ids])²; the two rows of W are taken as [1, 0], so that A·W[ids] = [[2 3 4]] and the gradient with respect to W is known. */
const A = [1, 2];
const W = [0, 1, 2, 2, 1, 0];
const IDS = [1, 0];
const VALUE = 4 + 9 + 16;
const GRADIENT = [8, 12, 16, 4, 6, 8];

/**
 * Proves the backend that is set now.
 * @throws Unavailable where a figure is wrong; whatever the backend throws otherwise.
 */
export async function prove(tf: typeof Tf): Promise<void> {
  const ids = tf.tensor1d(IDS, 'int32');
  const a = tf.tensor2d(A, [1, 2]);
  const w = tf.tensor2d(W, [2, 3]);
  const { value, grad } = tf.valueAndGrad((x: Tf.Tensor) =>
    tf.sum(tf.square(tf.matMul(a, tf.gather(x as Tf.Tensor2D, ids)))),
  )(w);
  try {
    const found = [...(await value.data()), ...(await grad.data())];
    const expected = [VALUE, ...GRADIENT];
    if (found.length !== expected.length || found.some((x, i) => !(Math.abs(x - (expected[i] ?? 0)) < 1e-4))) {
      throw new Unavailable(
        `it computes wrongly: expected ${expected.join(' ')}, found ${found.join(' ')}`,
        'computes wrongly',
      );
    }
  } finally {
    tf.dispose([ids, a, w, value, grad]);
  }
}
