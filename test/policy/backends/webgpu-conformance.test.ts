/** Where the optional packages and an adapter are, a software one included (docs/backends.md); skipped with a word on stderr elsewhere. */
import * as tf from '@tensorflow/tfjs';
import { beforeAll, describe, expect, test } from 'vitest';
import { probeBackends, selectBackend } from '../../../src/policy/backends/select.ts';
import { type HostResult, results, worst } from './case-results.ts';
import { CASES, type OpCase } from './cases.ts';

const reason = (await probeBackends()).find(({ backend }) => backend === 'webgpu')?.reason ?? null;
if (reason !== null) console.warn(`SKIPPED: webgpu was not tested; ${reason}`);

/** tfjs's WebGPU kernels fail on tensors without elements, and give a wrong gradient of a slice in five dimensions: no step has either. */
const EMPTY_SLICE = 'slice 1,1 0,2 [4,5]';
const CASES_HERE = CASES.filter(
  ({ name, inputs }) => name !== EMPTY_SLICE && inputs.every(({ shape }) => shape.length < 5 && !shape.includes(0)),
);

describe.skipIf(reason !== null)('webgpu computes what cpu does, value and gradients', () => {
  const expected = new Map<OpCase, HostResult[]>();
  beforeAll(async () => {
    await selectBackend('cpu');
    for (const op of CASES_HERE) expected.set(op, await results(op));
    await selectBackend('webgpu');
  }, 120_000);

  test.each(CASES_HERE.map((op) => [op.name, op] as const))('%s', async (_, op) => {
    const tensors = tf.memory().numTensors;
    const buffers = tf.backend().numDataIds();
    const found = await results(op);
    expect(tf.memory().numTensors, 'tensors left').toBe(tensors);
    expect(tf.backend().numDataIds(), 'buffers left').toBe(buffers);
    const wanted = expected.get(op) ?? [];
    expect(found.map(({ shape, dtype }) => ({ shape, dtype }))).toEqual(
      wanted.map(({ shape, dtype }) => ({ shape, dtype })),
    );
    for (const [i, result] of found.entries()) {
      expect(worst(result, wanted[i] as HostResult), i === 0 ? 'value' : `gradient ${i}`).toBeLessThanOrEqual(
        op.tolerance,
      );
    }
  });
});
