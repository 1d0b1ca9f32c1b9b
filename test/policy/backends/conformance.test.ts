import * as tf from '@tensorflow/tfjs';
import { describe, expect, test } from 'vitest';
import { selectBackend } from '../../../src/policy/backends/select.ts';
import { DecodeBatch, Decoder } from '../../../src/policy/transformer/decoder.ts';
import { transformer } from '../../../src/policy/transformer/model.ts';
import { generator } from '../../../src/records/random.ts';
import { type Batch, FORBIDDEN } from '../../../src/train/batch.ts';
import { initialState, trainStep } from '../../../src/train/step.ts';
import { conforms, results } from './case-results.ts';
import { CASES } from './cases.ts';

describe('wasm computes what cpu does, value and gradients', () => {
  conforms('wasm', CASES);
});

test('an index that is out of range is an error and leaves nothing behind', async () => {
  await selectBackend('wasm');
  const [x, below, above] = [tf.zeros([3, 2]), tf.tensor1d([0, -1], 'int32'), tf.tensor1d([3], 'int32')];
  const buffers = tf.backend().numDataIds();
  for (const indices of [below, above]) {
    expect(() => tf.gather(x, indices)).toThrow(/expected indices within \[0, 3\), found (-1|3)/);
  }
  expect(tf.backend().numDataIds()).toBe(buffers);
  tf.dispose([x, below, above]);
});

/** Names of the kernels that `work` runs on the backend that is set. */
async function kernelsOf(work: () => Promise<void>): Promise<Set<string>> {
  const { kernelNames } = await tf.profile(async () => {
    await work();
    return tf.scalar(0);
  });
  // The list has custom gradients and scopes by their names as well.
  return new Set(kernelNames.filter((name) => tf.getKernel(name, 'wasm') !== undefined));
}

test('every kernel of a training step and of decoding has its case here', async () => {
  await selectBackend('wasm');
  const covered = await kernelsOf(async () => {
    for (const op of CASES) await results(op);
  });
  const config = {
    vocabulary: 9,
    layers: 2,
    width: 8,
    heads: 2,
    kvHeads: 1,
    headWidth: 4,
    hidden: 12,
    ropeBase: 10000,
    epsilon: 1e-5,
    tied: true,
  };
  const model = transformer(config);
  const weights = Object.fromEntries(
    Object.entries(model.init(generator('used'))).map(([name, w]) => [name, tf.tensor(w.data, [...w.shape])]),
  );
  const batch: Batch = {
    rows: [0, 1].map(() => ({ episode: '', segment: 0, ids: [], sampled: [] })),
    width: 8,
    ids: Int32Array.from({ length: 16 }, (_, i) => i % 9),
    scored: Int32Array.of(2, 3, 10),
    targets: Int32Array.of(3, 4, 2),
    behaviour: Float32Array.of(-2, -2, -2),
    advantages: Float32Array.of(1, -1, 0.5),
    maskIndex: Int32Array.of(0, 1, 0),
    masks: { rows: new Float32Array(18).fill(FORBIDDEN, 9, 12), states: 2, vocabulary: 9 },
    denominator: 3,
  };
  const used = await kernelsOf(async () => {
    trainStep({
      model,
      state: initialState(weights),
      reference: weights,
      batches: [batch, batch],
      objective: {
        kind: 'policy',
        temperature: 0.9,
        clipLow: 0.2,
        clipHigh: 0.3,
        entropyCoefficient: 0.01,
        klCoefficient: 0.1,
      },
      optimizer: { learningRate: 1e-3, beta1: 0.9, beta2: 0.99, epsilon: 1e-8, weightDecay: 0.01 },
      maxNorm: 1,
    });
    const decoding = new DecodeBatch(new Decoder(config, weights), [null, null]);
    await decoding.feed([[1, 2, 3], [4]]);
    await decoding.feed([[5], [6]]);
    decoding.keep([1]);
    await decoding.feed([[7]]);
    decoding.end();
  });
  expect(used.size).toBeGreaterThan(30);
  expect([...used].filter((kernel) => !covered.has(kernel))).toEqual([]);
});
