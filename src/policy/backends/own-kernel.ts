/** @module Kernels of isogym's own, each of which does what several of tfjs's operations do. Only some backends have them: `wasm/fused.ts`. */
import * as tf from '@tensorflow/tfjs';

export type OwnKernel =
  | 'RmsNorm'
  | 'RmsNormGrad'
  | 'Rotate'
  | 'SelfAttention'
  | 'SelfAttentionGrad'
  | 'CachedAttention'
  | 'ScoredLogprobs'
  | 'ScoredLogprobsGrad';

/**
 * Runs a kernel of our own, without a gradient: the caller stands inside a custom one, or outside of all.
 * @returns undefined where the backend that is set does not have it, and the caller composes it of operations.
 */
export function ownKernel(
  name: OwnKernel,
  inputs: Readonly<Record<string, tf.Tensor>>,
  attributes: Readonly<Record<string, number | boolean>> = {},
): readonly tf.Tensor[] | undefined {
  if (tf.getKernel(name, tf.getBackend()) === undefined) return undefined;
  const out: tf.Tensor | tf.Tensor[] = tf.engine().runKernel(name, inputs, attributes);
  return Array.isArray(out) ? out : [out];
}
