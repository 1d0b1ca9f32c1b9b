/** @module A table of logits, one row a state: the smallest trainable model. */
import * as tf from '@tensorflow/tfjs';
import { IsogymError } from '../records/errors.ts';
import type { Model } from './model.ts';

/**
 * One weight, `table` [states, actions], fresh: zeros, so that every action is equally likely. Its token ids: 0 … actions−1 are the actions, actions + s stands for state s. Each scored position must hold a state; the logits there are
 * the state's row, whatever came before.
 */
export function tabularModel(states: number, actions: number): Model {
  return {
    name: 'tabular',
    vocabulary: actions,
    init: () => ({ table: { shape: [states, actions], data: new Float32Array(states * actions) } }),
    logits({ table }, { ids, scored }) {
      if (table === undefined) throw new IsogymError('MISSING_WEIGHT', 'expected a weight named table, found none');
      return tf.tidy(() => {
        const state = tf.sub(tf.gather(tf.reshape(ids, [ids.size]), scored), tf.scalar(actions, 'int32'));
        return tf.gather(table as tf.Tensor2D, state as tf.Tensor1D);
      });
    },
  };
}
