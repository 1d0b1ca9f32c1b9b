/** @module The transformer as a trainable model: `forward.ts` is the pass, `weights.ts` the names. */
import * as tf from '@tensorflow/tfjs';
import type { Model } from '../model.ts';
import { checkConfig, type TransformerConfig } from './config.ts';
import { forward } from './forward.ts';
import { type RotaryTables, rotaryTables } from './rotary.ts';
import { initialWeights } from './weights.ts';

/** @throws INVALID_TRANSFORMER for sizes that do not fit together. */
export function transformer(config: TransformerConfig): Model {
  checkConfig(config);
  let tables: RotaryTables = { length: 0, cos: new Float32Array(0), sin: new Float32Array(0) };
  return {
    name: 'transformer',
    vocabulary: config.vocabulary,
    init: (random) => initialWeights(config, random),
    logits(weights, rows) {
      const T = rows.ids.shape[1];
      if (tables.length < T) tables = rotaryTables(config, Math.max(T, 2 * tables.length));
      return tf.tidy(() => forward(config, weights, rows, tables));
    },
  };
}
