import * as tf from '@tensorflow/tfjs';
import { describe, expect, test } from 'vitest';
import { Session } from '../../../src/policy/replay/session.ts';
import { conforms, read, tensorOf, valueAndGradients } from './case-results.ts';
import { CASES } from './cases.ts';
import { NATIVE, NATIVE_BACKEND } from './native.ts';

describe.skipIf(!NATIVE)('TensorFlow computes what cpu does, value and gradients', () => {
  // A half more than for wasm: oneDNN adds up in an order of its own.
  const check = conforms(NATIVE_BACKEND, CASES, 1.5);

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
