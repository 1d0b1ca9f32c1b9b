/**
 * @module tfjs-node's tensor handles, which come to an end: they are numbered by 32 bits with a sign, none is used again, and past the
 * last one nothing is freed any more. They are counted here, and begun anew with a fresh copy of the addon.
 */
import * as tf from '@tensorflow/tfjs';
import { IsogymError } from '../../records/errors.ts';
import { loadAgain } from './native.ts';
import type { NodeBackend } from './node-backend.ts';

/** Half of all: no iteration uses the other half. */
export const HANDLE_LIMIT = 2 ** 30;

/** How many tensor handles the addon has given out; null where the backend that is set is not TensorFlow's. Takes one. */
export function handlesUsed(): number | null {
  if (tf.getBackend() !== 'tensorflow') return null;
  const { binding } = tf.backend() as NodeBackend;
  const id = binding.createTensor([], binding.TF_FLOAT, new Float32Array(1));
  binding.deleteTensor(id);
  return id + 1;
}

/**
 * Begins with handle 0 again, in the same process and on the same library. Every tensor and session must have been disposed of before.
 * @throws TENSORS_LEFT where one was not: it would be lost
 */
export async function renewHandles(): Promise<void> {
  const left = tf.memory().numTensors;
  if (left > 0) {
    throw new IsogymError('TENSORS_LEFT', `expected no tensor when TensorFlow's addon is loaded anew, found ${left}`, {
      hint: 'isogym train --resume RUN goes on in a process of its own, from the checkpoint just written.',
    });
  }
  loadAgain();
  await tf.setBackend('tensorflow');
}
