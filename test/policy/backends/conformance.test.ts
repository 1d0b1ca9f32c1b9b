import * as tf from '@tensorflow/tfjs';
import { beforeAll, describe, expect, test } from 'vitest';
import { selectBackend } from '../../../src/policy/backends/select.ts';
import { CASES, type HostInput, type OpCase } from './cases.ts';

interface HostResult {
  readonly shape: readonly number[];
  readonly dtype: string;
  readonly values: readonly number[];
}

function tensorOf({ shape, dtype, values }: HostInput): tf.Tensor {
  return tf.tensor(values as number[], [...shape], dtype);
}

async function read(x: tf.Tensor): Promise<HostResult> {
  return { shape: x.shape, dtype: x.dtype, values: Array.from(await x.data()) };
}

/** The value, then the gradients of Σ cos(i) · valueᵢ in each float32 input. */
async function results({ inputs, run, differentiable }: OpCase): Promise<HostResult[]> {
  const tensors = inputs.map(tensorOf);
  const out = tf.tidy(() => {
    const apply = run as (...x: tf.Tensor[]) => tf.Tensor;
    const value = apply(...tensors);
    if (!differentiable) return [value];
    const slots = inputs.flatMap(({ dtype }, i) => (dtype === 'float32' ? [i] : []));
    const weights = tf.tensor(
      Array.from({ length: value.size }, (_, i) => Math.cos(i)),
      value.shape,
    );
    const loss = (...xs: tf.Tensor[]) => {
      const all = [...tensors];
      for (const [n, slot] of slots.entries()) all[slot] = xs[n] as tf.Tensor;
      return tf.sum(tf.mul(apply(...all), weights));
    };
    return [value, ...tf.grads(loss)(slots.map((slot) => tensors[slot] as tf.Tensor))];
  });
  const read_ = await Promise.all(out.map(read));
  tf.dispose([...tensors, ...out]);
  return read_;
}

function worst(found: HostResult, expected: HostResult): number {
  return found.values.reduce((most, x, i) => {
    const y = expected.values[i] ?? Number.NaN;
    const distance = Object.is(x, y) || x === y ? 0 : Math.abs(x - y) / (1 + Math.abs(y));
    return Number.isNaN(distance) ? Number.POSITIVE_INFINITY : Math.max(most, distance);
  }, 0);
}

describe('wasm computes what cpu does, value and gradients', () => {
  const expected = new Map<OpCase, HostResult[]>();
  beforeAll(async () => {
    await selectBackend('cpu');
    for (const op of CASES) expected.set(op, await results(op));
    await selectBackend('wasm');
  }, 120_000);

  test.each(CASES.map((op) => [op.name, op] as const))('%s', async (_, op) => {
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
