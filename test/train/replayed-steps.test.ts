import * as tf from '@tensorflow/tfjs';
import { beforeAll, describe, expect, test } from 'vitest';
import type { NodeBackend } from '../../src/policy/backends/node-backend.ts';
import { selectBackend } from '../../src/policy/backends/select.ts';
import type { Weights } from '../../src/policy/model.ts';
import { tabularModel } from '../../src/policy/tabular-model.ts';
import { transformer } from '../../src/policy/transformer/model.ts';
import { bucketed } from '../../src/train/buckets.ts';
import { EagerSteps } from '../../src/train/eager-steps.ts';
import { ReplayedSteps } from '../../src/train/replayed-steps.ts';
import type { Steps, UpdateOptions } from '../../src/train/steps.ts';
import { NATIVE, NATIVE_BACKEND } from '../policy/backends/native.ts';
import { SMALL, wildWeights } from '../policy/transformer/fixtures.ts';
import { OBJECTIVES, raggedBatch } from './replay-cases.ts';

const OPTIMIZER = { learningRate: 3e-3, beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weightDecay: 0.1 };
const model = transformer(SMALL);
const weights = wildWeights(SMALL, 'replay', 0.3);
/** Shapes: one row, many short ones, few long ones, and work for several micro-batches. */
const LENGTHS = [[9], [5, 6, 7, 8, 5, 6, 7, 8, 5], [40, 38, 22], [17, 30, 9, 12, 33, 8, 21, 26]];

function batch(lengths: readonly number[], seed: string, states = 3) {
  return raggedBatch({ lengths, vocabulary: SMALL.vocabulary, states, seed });
}

function options(given: Partial<UpdateOptions> & Pick<UpdateOptions, 'batch'>): UpdateOptions {
  const objective = OBJECTIVES.policy!;
  return { microTokens: 200, objective, optimizer: OPTIMIZER, maxNorm: 1, epochs: 1, ...given };
}

/** Largest difference, relative to the largest value of its tensor. */
function distance(a: Weights, b: Weights): number {
  expect(Object.keys(a)).toEqual(Object.keys(b));
  return Math.max(
    ...Object.entries(a).map(([name, { data }]) => {
      const other = b[name]!.data;
      const scale = Math.max(1e-6, ...data.map(Math.abs));
      return Math.max(...data.map((x, i) => Math.abs(x - other[i]!))) / scale;
    }),
  );
}

describe.skipIf(!NATIVE)('replayed steps', () => {
  beforeAll(async () => {
    await selectBackend(NATIVE_BACKEND);
  });

  describe.each(Object.keys(OBJECTIVES))('%s', (name) => {
    test('equal eager ones over 20 steps of changing shapes: figures, moments (which are sums of gradients) and weights', async () => {
      const objective = OBJECTIVES[name]!;
      const both: Steps[] = [new EagerSteps(model, { weights }), new ReplayedSteps(model, { weights })];
      const needsReference = objective.kind === 'policy' && objective.klCoefficient > 0;
      if (needsReference) for (const steps of both) await steps.anchor();
      for (let step = 0; step < 20; step++) {
        const given = options({ batch: batch(LENGTHS[step % 4]!, `${step}`), objective });
        const [eager, replayed] = await Promise.all(both.map((steps) => steps.update(given)));
        expect(replayed!.steps).toHaveLength(1);
        const [found, expected] = [replayed!.steps[0]!, eager!.steps[0]!];
        expect(found.tokens).toBe(expected.tokens);
        for (const key of ['loss', 'gradientNorm', 'entropy'] as const)
          expect(found[key]).toBeCloseTo(expected[key], 4);
        expect(found.referenceKl === null).toBe(!needsReference);
        if (needsReference) expect(found.referenceKl).toBeCloseTo(expected.referenceKl!, 5);
      }
      const [eager, replayed] = await Promise.all(both.map((steps) => steps.snapshot()));
      expect(distance(replayed!.weights, eager!.weights)).toBeLessThan(2e-4);
      expect(distance(replayed!.m, eager!.m)).toBeLessThan(2e-3);
      expect(distance(replayed!.v, eager!.v)).toBeLessThan(2e-3);
      expect(replayed!.updates).toEqual(eager!.updates);
      for (const steps of both) steps.dispose();
    });
  });

  test.each(Object.keys(OBJECTIVES))(
    'the first step is the eager one of the same padded batch, to rounding: every gradient by itself, %s',
    async (name) => {
      const objective = OBJECTIVES[name]!;
      for (const lengths of LENGTHS) {
        const whole = batch(lengths, 'one');
        const [part] = bucketed(whole, 1e6, SMALL.vocabulary);
        expect(part!.padded.ids.length).toBeGreaterThanOrEqual(whole.ids.length);
        const both: Steps[] = [new EagerSteps(model, { weights }), new ReplayedSteps(model, { weights })];
        const moments = await Promise.all(
          both.map(async (steps) => {
            if (objective.kind === 'policy' && objective.klCoefficient > 0) await steps.anchor();
            await steps.update(
              options({
                batch: whole,
                objective,
                // Of one part: the padded batch and the whole one are cut alike, namely not at all.
                microTokens: 1e6,
                optimizer: { ...OPTIMIZER, weightDecay: 0 },
                maxNorm: Number.POSITIVE_INFINITY,
              }),
            );
            const { m } = await steps.snapshot();
            steps.dispose();
            return m;
          }),
        );
        // m after one step is (1 − β₁) times the gradient.
        expect(distance(moments[1]!, moments[0]!)).toBeLessThan(2e-5);
      }
    },
  );

  test('several micro-batches are one step', async () => {
    const given = batch(LENGTHS[3]!, 'split');
    const one = new ReplayedSteps(model, { weights });
    const many = new ReplayedSteps(model, { weights });
    const whole = await one.update(options({ batch: given, microTokens: 1e6 }));
    const parts = await many.update(options({ batch: given, microTokens: 64 }));
    expect(whole.microBatches).toBe(1);
    expect(parts.microBatches).toBeGreaterThan(2);
    expect(parts.steps[0]!.gradientNorm / whole.steps[0]!.gradientNorm).toBeCloseTo(1, 5);
    expect(distance((await many.snapshot()).m, (await one.snapshot()).m)).toBeLessThan(2e-5);
    one.dispose();
    many.dispose();
  });

  test('a step is one call of TensorFlow for each micro-batch, and one for the update', async () => {
    const steps = new ReplayedSteps(model, { weights });
    const given = options({ batch: batch(LENGTHS[3]!, 'calls'), microTokens: 64 });
    const { microBatches } = await steps.update(given);
    const backend = tf.backend() as NodeBackend;
    const { binding } = backend;
    let calls = 0;
    const runSavedModel: typeof binding.runSavedModel = (...call) => {
      calls++;
      return binding.runSavedModel(...call);
    };
    backend.binding = Object.create(binding, { runSavedModel: { value: runSavedModel } });
    try {
      await steps.update(given);
    } finally {
      backend.binding = binding;
    }
    expect(calls).toBe(microBatches + 1);
    steps.dispose();
  });

  test('works without a grammar, and for the tabular model', async () => {
    const plain = batch([9, 12], 'plain', 0);
    const eager = new EagerSteps(model, { weights });
    const replayed = new ReplayedSteps(model, { weights });
    for (const steps of [eager, replayed]) {
      await steps.update(options({ batch: plain, objective: OBJECTIVES['policy with entropy, at a temperature']! }));
    }
    expect(distance((await replayed.snapshot()).m, (await eager.snapshot()).m)).toBeLessThan(2e-5);
    eager.dispose();
    replayed.dispose();

    const table = tabularModel(4, 3);
    const start = { weights: table.init(() => 0) };
    const states = raggedBatch({ lengths: [2, 2, 2], vocabulary: 3, states: 0, seed: 'tabular' });
    for (const row of [0, 1, 2]) states.ids[row * states.width] = 3 + row;
    const rows = states.rows.map((row, b) => ({ ...row, ids: [3 + b, row.ids[1]!] }));
    const tabular = [new EagerSteps(table, start), new ReplayedSteps(table, start)] as const;
    for (const steps of tabular) await steps.update(options({ batch: { ...states, rows } }));
    expect(distance((await tabular[1].snapshot()).m, (await tabular[0].snapshot()).m)).toBeLessThan(1e-5);
    for (const steps of tabular) steps.dispose();
  });

  test('a snapshot goes on as if nothing had happened, to the bit', async () => {
    const through = new ReplayedSteps(model, { weights });
    const first = new ReplayedSteps(model, { weights });
    const update = (steps: Steps, n: number) =>
      steps.update(options({ batch: batch(LENGTHS[n % 4]!, `s${n}`), objective: OBJECTIVES['policy with KL']! }));
    for (const steps of [through, first]) await steps.anchor();
    for (let n = 0; n < 3; n++) for (const steps of [through, first]) await update(steps, n);
    const second = new ReplayedSteps(model, await first.snapshot());
    for (let n = 3; n < 6; n++) for (const steps of [through, second]) await update(steps, n);
    expect(await second.snapshot()).toEqual(await through.snapshot());
    for (const steps of [through, first, second]) steps.dispose();
  });

  test.each([1, 2])(
    'a step that fails in epoch %i leaves weights, moments and counts as they were, to the bit',
    async (epochs) => {
      const steps = new ReplayedSteps(model, { weights });
      await steps.update(options({ batch: batch(LENGTHS[1]!, 'good') }));
      const before = await steps.snapshot();
      const good = batch(LENGTHS[1]!, 'bad');
      // One epoch fails by a logprob that cannot be; the second of two by weights that the first has blown up.
      const bad =
        epochs === 1
          ? options({
              batch: {
                ...good,
                rows: good.rows.map((row) => ({
                  ...row,
                  sampled: row.sampled.map((s) => ({ ...s, advantage: Number.NaN })),
                })),
              },
            })
          : options({ batch: good, epochs, optimizer: { ...OPTIMIZER, learningRate: 1e30 } });
      await expect(steps.update(bad)).rejects.toMatchObject({ code: expect.stringMatching(/^NONFINITE/) });
      expect(await steps.snapshot()).toEqual(before);
      await steps.update(options({ batch: batch(LENGTHS[1]!, 'next') }));
      steps.dispose();
    },
  );

  /** TensorFlow fails in the n-th update of the weights from now on, once it has changed them. */
  function failing(n: number): { restore(): void } {
    const backend = tf.backend() as NodeBackend;
    const { binding } = backend;
    let updates = 0;
    const runSavedModel: typeof binding.runSavedModel = (session, inputs, from, to) => {
      const made = binding.runSavedModel(session, inputs, from, to);
      if (to.includes('/apply:') && ++updates === n) throw new Error('no memory');
      return made;
    };
    backend.binding = Object.create(binding, { runSavedModel: { value: runSavedModel } });
    return {
      restore: () => {
        backend.binding = binding;
      },
    };
  }

  test('a failure of TensorFlow inside the update itself ends the steps: neither learnt from nor saved any more', async () => {
    const steps = new ReplayedSteps(model, { weights });
    await steps.update(options({ batch: batch(LENGTHS[1]!, 'good') }));
    const fault = failing(1);
    await expect(steps.update(options({ batch: batch(LENGTHS[1]!, 'bad') }))).rejects.toThrow('no memory');
    fault.restore();
    const lost = { code: 'STATE_LOST', hint: expect.stringContaining('--resume') };
    await expect(steps.update(options({ batch: batch(LENGTHS[1]!, 'next') }))).rejects.toMatchObject(lost);
    await expect(steps.snapshot()).rejects.toMatchObject(lost);
    steps.dispose();
  });

  test.each([1, 2])('one in update %i of two epochs goes back to the weights before both, to the bit', async (n) => {
    const steps = new ReplayedSteps(model, { weights });
    await steps.update(options({ batch: batch(LENGTHS[1]!, 'good'), epochs: 2 }));
    const before = await steps.snapshot();
    const fault = failing(n);
    const bad = options({ batch: batch(LENGTHS[1]!, 'bad'), epochs: 2 });
    await expect(steps.update(bad)).rejects.toThrow('no memory');
    fault.restore();
    expect(await steps.snapshot()).toEqual(before);
    await steps.update(options({ batch: batch(LENGTHS[1]!, 'next'), epochs: 2 }));
    steps.dispose();
  });

  test('forgetting and anchoring are those of eager steps', async () => {
    const both: Steps[] = [new EagerSteps(model, { weights }), new ReplayedSteps(model, { weights })];
    for (const steps of both) {
      await steps.update(options({ batch: batch(LENGTHS[0]!, 'f') }));
      await steps.forget();
      await steps.anchor();
      const { statistics } = {
        statistics: await steps.update(
          options({ batch: batch(LENGTHS[2]!, 'g'), objective: OBJECTIVES['policy with KL']! }),
        ),
      };
      // Anchored here, so that the first step is at no distance from the reference.
      expect(statistics.steps[0]!.referenceKl).toBeCloseTo(0, 6);
    }
    const [eager, replayed] = await Promise.all(both.map((steps) => steps.snapshot()));
    expect(replayed!.updates).toEqual(eager!.updates);
    expect(distance(replayed!.m, eager!.m)).toBeLessThan(1e-3);
    expect(distance(replayed!.reference!, eager!.reference!)).toBeLessThan(1e-4);
    for (const steps of both) steps.dispose();
  });

  test('records each shape once, and leaves no tensor behind', async () => {
    const before = tf.memory();
    const steps = new ReplayedSteps(model, { weights });
    const twelve = async () => {
      for (let n = 0; n < 12; n++) {
        await steps.update(options({ batch: batch(LENGTHS[n % 2]!, 'same'), epochs: 1 + (n % 3) }));
      }
    };
    await twelve();
    const { recordings } = steps;
    const { numTensors } = tf.memory();
    await twelve();
    // Two shapes, the update, and what more epochs than one may go back to.
    expect([recordings, steps.recordings]).toEqual([4, 4]);
    expect(tf.memory().numTensors).toBe(numTensors);
    expect(steps.weights).toBe(steps.weights);
    steps.dispose();
    expect(tf.memory().numTensors).toBe(before.numTensors);
  });

  test('a weight that the loss does not use is an error that names it', async () => {
    const unused = { ...weights, 'value.head': { shape: [2], data: new Float32Array(2) } };
    const steps = new ReplayedSteps(model, { weights: unused });
    await expect(steps.update(options({ batch: batch(LENGTHS[0]!, 'u') }))).rejects.toMatchObject({
      code: 'NOT_RECORDABLE',
      message: expect.stringContaining('value.head'),
    });
    steps.dispose();
  });
});
