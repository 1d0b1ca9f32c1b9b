/** @module The weights as the products use them: query, key and value side by side, each norm's weight folded into what it feeds. */
import * as tf from '@tensorflow/tfjs';
import { IsogymError } from '../../records/errors.ts';
import type { NamedTensors } from '../model.ts';
import type { TransformerConfig } from './config.ts';
import { EMBEDDING, FINAL_NORM, HEAD, type LAYER_WEIGHTS, layerWeight } from './weights.ts';

export interface PackedLayer {
  /** [d, fusedWidth]. */
  readonly fused: tf.Tensor2D;
  /** [H·headWidth, d]. */
  readonly output: tf.Tensor2D;
  /** [d, hidden]. */
  readonly gate: tf.Tensor2D;
  readonly up: tf.Tensor2D;
  /** [hidden, d]. */
  readonly down: tf.Tensor2D;
}

export interface PackedWeights {
  /** [V, d]. */
  readonly embedding: tf.Tensor2D;
  readonly layers: readonly PackedLayer[];
  /** [d, V]. */
  readonly head: tf.Tensor2D;
}

/**
 * (x̂ ∘ w)·W = x̂·(diag(w)·W): the norm's weight is multiplied in once per pass and not once per token. Differentiable in the
 * named weights; operations on weights alone, so that a decoder does this once for a version of the weights. Gate and up stay
 * apart: side by side they cost 6 % more on wasm, where the halves must be cut out of every row.
 * @throws MISSING_WEIGHT where a name is absent.
 */
export function pack(config: TransformerConfig, weights: NamedTensors): PackedWeights {
  const get = (name: string): tf.Tensor => {
    const tensor = weights[name];
    if (tensor === undefined) throw new IsogymError('MISSING_WEIGHT', `expected a weight named ${name}, found none`);
    return tensor;
  };
  const scaled = (norm: string, matrix: tf.Tensor): tf.Tensor2D =>
    tf.mul(tf.reshape(get(norm), [config.width, 1]), matrix) as tf.Tensor2D;
  const layers = Array.from({ length: config.layers }, (_, i): PackedLayer => {
    const named = (part: keyof typeof LAYER_WEIGHTS) => layerWeight(i, part);
    const qkv = tf.concat([get(named('query')), get(named('key')), get(named('value'))] as tf.Tensor2D[], 1);
    return {
      fused: scaled(named('attentionNorm'), qkv),
      output: get(named('output')) as tf.Tensor2D,
      gate: scaled(named('mlpNorm'), get(named('gate'))),
      up: scaled(named('mlpNorm'), get(named('up'))),
      down: get(named('down')) as tf.Tensor2D,
    };
  });
  const embedding = get(EMBEDDING) as tf.Tensor2D;
  return { embedding, layers, head: scaled(FINAL_NORM, config.tied ? tf.transpose(embedding) : get(HEAD)) };
}
