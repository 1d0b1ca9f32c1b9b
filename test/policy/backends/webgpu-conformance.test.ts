/** Where the optional packages and an adapter are, a software one included (docs/backends.md); skipped with a word on stderr elsewhere. */
import * as tf from '@tensorflow/tfjs';
import { describe, expect, test } from 'vitest';
import { benchBatch } from '../../../src/bench/train.ts';
import type { BackendName } from '../../../src/policy/backends/backend.ts';
import { probeBackends, selectBackend } from '../../../src/policy/backends/select.ts';
import { transformer } from '../../../src/policy/transformer/model.ts';
import { generator } from '../../../src/records/random.ts';
import { EagerSteps } from '../../../src/train/eager-steps.ts';
import { conforms } from './case-results.ts';
import { CASES } from './cases.ts';

const reason = (await probeBackends()).find(({ backend }) => backend === 'webgpu')?.reason ?? null;
if (reason !== null) console.warn(`SKIPPED: webgpu was not tested; ${reason}`);

/** tfjs's WebGPU kernels fail on tensors without elements, and give a wrong gradient of a slice in five dimensions: no step has either. */
const EMPTY_SLICE = 'slice 1,1 0,2 [4,5]';
const CASES_HERE = CASES.filter(
  ({ name, inputs }) => name !== EMPTY_SLICE && inputs.every(({ shape }) => shape.length < 5 && !shape.includes(0)),
);

describe.skipIf(reason !== null)('webgpu computes what cpu does, value and gradients', () => {
  conforms('webgpu', CASES_HERE);
});

const MODEL = {
  ...{ vocabulary: 64, layers: 3, width: 32, heads: 2, kvHeads: 2, headWidth: 16, hidden: 48 },
  ...{ ropeBase: 10_000, epsilon: 1e-5, tied: true },
};

/** Of three updates of nine micro-batches. */
async function trainedOn(backend: BackendName) {
  await selectBackend(backend);
  const model = transformer(MODEL);
  const steps = new EagerSteps(model, { weights: model.init(generator('webgpu')) });
  const norms: number[] = [];
  for (let i = 0; i < 3; i++) {
    const { steps: of } = await steps.update({
      batch: benchBatch(MODEL.vocabulary, 18, 8),
      microTokens: 16,
      objective: { kind: 'supervised', temperature: 1 },
      optimizer: { learningRate: 1e-3, beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weightDecay: 0.1 },
      maxNorm: 0.1,
      epochs: 1,
    });
    for (const { loss, gradientNorm } of of) norms.push(loss, gradientNorm);
  }
  steps.dispose();
  return norms;
}

describe.skipIf(reason !== null)('on webgpu', () => {
  test('whole training steps are those of cpu: losses, norms of the gradients', async () => {
    const expected = await trainedOn('cpu');
    const found = await trainedOn('webgpu');
    expect(found).toHaveLength(6);
    for (const [i, value] of found.entries()) expect(value).toBeCloseTo(expected[i] as number, 4);
  });

  test('what the device refuses is an error when it is read, and not the zeros that were there', async () => {
    await selectBackend('webgpu');
    const sum = tf.addN(Array.from({ length: 50 }, (_, i) => tf.scalar(i)));
    await expect(sum.data()).rejects.toMatchObject({
      code: 'BACKEND_FAILED',
      message: expect.stringContaining('storage buffers'),
    });
  });
});
