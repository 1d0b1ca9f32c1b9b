import * as tf from '@tensorflow/tfjs';
import { beforeAll, describe, expect, test } from 'vitest';
import { selectBackend } from '../../../src/policy/backends/select.ts';
import { Session } from '../../../src/policy/replay/session.ts';
import { type HostResult, read, results, tensorOf, valueAndGradients, worst } from './case-results.ts';
import { CASES, type OpCase } from './cases.ts';
import { NATIVE, NATIVE_BACKEND } from './native.ts';

describe.skipIf(!NATIVE)('TensorFlow computes what cpu does, value and gradients', () => {
  const expected = new Map<OpCase, HostResult[]>();
  beforeAll(async () => {
    await selectBackend('cpu');
    for (const op of CASES) expected.set(op, await results(op));
    await selectBackend(NATIVE_BACKEND);
  }, 120_000);

  function check(op: OpCase, found: readonly HostResult[]): void {
    const wanted = expected.get(op) ?? [];
    expect(found.map(({ shape, dtype }) => ({ shape, dtype }))).toEqual(
      wanted.map(({ shape, dtype }) => ({ shape, dtype })),
    );
    for (const [i, result] of found.entries()) {
      // A half more than for wasm: oneDNN adds up in an order of its own.
      expect(worst(result, wanted[i] as HostResult), i === 0 ? 'value' : `gradient ${i}`).toBeLessThanOrEqual(
        1.5 * op.tolerance,
      );
    }
  }

  test.each(CASES.map((op) => [op.name, op] as const))('%s', async (_, op) => {
    const tensors = tf.memory().numTensors;
    const buffers = tf.backend().numDataIds();
    check(op, await results(op));
    expect(tf.memory().numTensors, 'tensors left').toBe(tensors);
    expect(tf.backend().numDataIds(), 'buffers left').toBe(buffers);
  });

  test.each(CASES.map((op) => [op.name, op] as const))('%s, replayed', async (_, op) => {
    const before = tf.memory().numTensors;
    const session = new Session();
    const feeds = Object.fromEntries(op.inputs.map((input, i) => [`x${i}`, tensorOf(input)]));
    session.define('op', feeds, () => ({
      outputs: Object.fromEntries(valueAndGradients(op, Object.values(feeds)).map((out, i) => [`y${i}`, out])),
    }));
    // Twice: what the first call leaves must not be seen by the second.
    tf.dispose(session.run('op', feeds));
    const out = session.run('op', feeds);
    check(op, await Promise.all(Object.values(out).map(read)));
    tf.dispose([...Object.values(out), ...Object.values(feeds)]);
    session.dispose();
    expect(tf.memory().numTensors, 'tensors left').toBe(before);
  });
});
