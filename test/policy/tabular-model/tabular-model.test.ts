import * as tf from '@tensorflow/tfjs';
import { beforeEach, describe, expect, it } from 'vitest';
import { tabularModel } from '../../../src/policy/tabular-model.ts';
import { generator } from '../../../src/records/random.ts';
import { BACKENDS, use } from '../transformer/fixtures.ts';

describe.each(BACKENDS)('on $backend the tabular model', ({ backend }) => {
  beforeEach(() => use(backend));

  const model = tabularModel(4, 3);

  it('starts with equally likely actions', () => {
    expect(model.vocabulary).toBe(3);
    expect(model.init(generator('unused'))).toEqual({ table: { shape: [4, 3], data: new Float32Array(12) } });
  });

  it('gives the rows of the states at the scored positions, and their gradient to those rows alone', () => {
    const count = tf.memory().numTensors;
    const table = tf.tensor2d([0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32], [4, 3]);
    // State 3, action 2, state 1, action 0; state 1, action 1, padding.
    const ids = tf.tensor2d([6, 2, 4, 0, 4, 1, 0, 0], [2, 4], 'int32');
    const scored = tf.tensor1d([0, 2, 4], 'int32');
    const logits = model.logits({ table }, { ids, scored });
    expect(logits.arraySync()).toEqual([
      [30, 31, 32],
      [10, 11, 12],
      [10, 11, 12],
    ]);
    const weight = tf.tensor2d([1, 2, 3, 4, 5, 6, 7, 8, 9], [3, 3]);
    const gradient = tf.grad((t: tf.Tensor) => tf.sum(tf.mul(model.logits({ table: t }, { ids, scored }), weight)))(
      table,
    );
    expect(gradient.arraySync()).toEqual([
      [0, 0, 0],
      [11, 13, 15],
      [0, 0, 0],
      [1, 2, 3],
    ]);
    tf.dispose([table, ids, scored, logits, weight, gradient]);
    expect(tf.memory().numTensors).toBe(count);
  });
});
