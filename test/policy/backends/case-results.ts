/** @module What a case of `cases.ts` gives on the backend that is set, and whether that is what `cpu` gives. */
import * as tf from '@tensorflow/tfjs';
import { beforeAll, expect, test } from 'vitest';
import type { BackendName } from '../../../src/policy/backends/backend.ts';
import { selectBackend } from '../../../src/policy/backends/select.ts';
import type { HostInput, OpCase } from './cases.ts';

export interface HostResult {
  readonly shape: readonly number[];
  readonly dtype: string;
  readonly values: readonly number[];
}

export function tensorOf({ shape, dtype, values }: HostInput): tf.Tensor {
  return tf.tensor(values as number[], [...shape], dtype);
}

export async function read(x: tf.Tensor): Promise<HostResult> {
  return { shape: x.shape, dtype: x.dtype, values: Array.from(await x.data()) };
}

/** The value, then the gradients of Σ cos(i) · valueᵢ in each float32 input. */
export async function results(op: OpCase): Promise<HostResult[]> {
  const tensors = op.inputs.map(tensorOf);
  const out = tf.tidy(() => valueAndGradients(op, tensors));
  const read_ = await Promise.all(out.map(read));
  tf.dispose([...tensors, ...out]);
  return read_;
}

/**
 * In a `describe`: the backend is set, and a test for each case holds value and gradients to `cpu`'s, with nothing left behind.
 * @param slack times each case's tolerance is allowed
 * @returns what the tests hold a result by
 */
export function conforms(
  backend: BackendName,
  cases: readonly OpCase[],
  slack = 1,
): (op: OpCase, found: readonly HostResult[]) => void {
  const expected = new Map<OpCase, readonly HostResult[]>();
  beforeAll(async () => {
    await selectBackend('cpu');
    for (const op of cases) expected.set(op, await results(op));
    await selectBackend(backend);
  }, 120_000);

  const check = (op: OpCase, found: readonly HostResult[]): void => {
    const wanted = expected.get(op) ?? [];
    expect(found.map(({ shape, dtype }) => ({ shape, dtype }))).toEqual(
      wanted.map(({ shape, dtype }) => ({ shape, dtype })),
    );
    for (const [i, result] of found.entries()) {
      expect(worst(result, wanted[i] as HostResult), i === 0 ? 'value' : `gradient ${i}`).toBeLessThanOrEqual(
        slack * op.tolerance,
      );
    }
  };

  test.each(cases.map((op) => [op.name, op] as const))('%s', async (_, op) => {
    const tensors = tf.memory().numTensors;
    const buffers = tf.backend().numDataIds();
    check(op, await results(op));
    expect(tf.memory().numTensors, 'tensors left').toBe(tensors);
    expect(tf.backend().numDataIds(), 'buffers left').toBe(buffers);
  });
  return check;
}

function worst(found: HostResult, expected: HostResult): number {
  return found.values.reduce((most, x, i) => {
    const y = expected.values[i] ?? Number.NaN;
    const distance = Object.is(x, y) || x === y ? 0 : Math.abs(x - y) / (1 + Math.abs(y));
    return Number.isNaN(distance) ? Number.POSITIVE_INFINITY : Math.max(most, distance);
  }, 0);
}

/** The value, then the gradient in each float32 input. */
export function valueAndGradients({ inputs, run, differentiable }: OpCase, tensors: readonly tf.Tensor[]): tf.Tensor[] {
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
}
