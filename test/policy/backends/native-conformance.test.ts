import * as tf from '@tensorflow/tfjs';
import { describe, expect, test, vi } from 'vitest';
import { Graph } from '../../../src/policy/replay/recorder.ts';
import { Session } from '../../../src/policy/replay/session.ts';
import { transformer } from '../../../src/policy/transformer/model.ts';
import { ReplayedDecoder } from '../../../src/policy/transformer/replayed-decoder.ts';
import type { Objective } from '../../../src/train/part.ts';
import { ReplayedSteps } from '../../../src/train/replayed-steps.ts';
import { OBJECTIVES, raggedBatch } from '../../train/replay-cases.ts';
import { SMALL, tensors, wildWeights } from '../transformer/fixtures.ts';
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

  test('every operation of a recorded training and decode step is one of these, or of the session itself', async () => {
    const add = vi.spyOn(Graph.prototype, 'add');
    const seen = () => new Set(add.mock.calls.map(([, op]) => op));
    for (const op of CASES) {
      const feeds = Object.fromEntries(op.inputs.map((input, i) => [`x${i}`, tensorOf(input)]));
      const session = new Session();
      session.define('op', feeds, () => ({
        outputs: Object.fromEntries(valueAndGradients(op, Object.values(feeds)).map((out, i) => [`y${i}`, out])),
      }));
      session.dispose();
      tf.dispose(feeds);
    }
    const covered = seen();
    add.mockClear();

    const weights = wildWeights(SMALL, 'used');
    const steps = new ReplayedSteps(transformer(SMALL), { weights });
    await steps.anchor();
    const objective = OBJECTIVES['policy with entropy and KL'] as Objective;
    const optimizer = { learningRate: 1e-3, beta1: 0.9, beta2: 0.99, epsilon: 1e-8, weightDecay: 0.01 };
    const batch = raggedBatch({ lengths: [9, 5, 7], vocabulary: SMALL.vocabulary, states: 3, seed: 'used' });
    await steps.update({ batch, objective, optimizer, microTokens: 16, maxNorm: 1, epochs: 2 });
    steps.dispose();
    for (const temperature of [null, 0.9]) {
      const decoder = new ReplayedDecoder({ config: SMALL, grammar: null, temperature });
      const onBackend = tensors(weights);
      decoder.load({}, onBackend);
      decoder.reserve(2, 3);
      const slots = [decoder.open(), decoder.open()];
      for (const tokens of [[3, 4], [5]]) decoder.step(slots.map((slot) => ({ slot, tokens, state: 0, uniform: 0.5 })));
      decoder.dispose();
      tf.dispose(onBackend);
    }
    // What holds variables, and how they change: `session.test.ts`, and the steps and rows that are held to eager ones.
    const own = ['VarHandleOp', 'ReadVariableOp', 'AssignVariableOp', 'DeepCopy', 'InplaceUpdate', 'ResourceApplyAdam'];
    const used = seen();
    add.mockRestore();
    expect(used.size).toBeGreaterThan(30);
    expect([...used].filter((op) => !covered.has(op)).toSorted()).toEqual(own.toSorted());
  });
});
