import * as tf from '@tensorflow/tfjs';
import { beforeAll, describe, expect, it } from 'vitest';
import { selectBackend } from '../../src/policy/backends/select.ts';
import { generator } from '../../src/records/random.ts';
import { type AdamWOptions, adamw, clipByGlobalNorm, zeroMoments } from '../../src/train/adamw.ts';

beforeAll(() => selectBackend('cpu'));

const OPTIONS: AdamWOptions = { learningRate: 0.1, beta1: 0.9, beta2: 0.99, epsilon: 1e-8, weightDecay: 0.5 };
const numbers = (tensor: tf.Tensor | undefined) => [...tensor!.dataSync()];

/** torch.optim.AdamW's documented update of one number, in double precision. */
function scalarAdamW(theta: number, gradients: readonly number[], o: AdamWOptions, decay: boolean): number {
  let [m, v, t] = [0, 0, 0];
  for (const g of gradients) {
    t++;
    if (decay) theta -= o.learningRate * o.weightDecay * theta;
    m = o.beta1 * m + (1 - o.beta1) * g;
    v = o.beta2 * v + (1 - o.beta2) * g * g;
    const mHat = m / (1 - o.beta1 ** t);
    const vHat = v / (1 - o.beta2 ** t);
    theta -= (o.learningRate * mHat) / (Math.sqrt(vHat) + o.epsilon);
  }
  return theta;
}

describe('adamw', () => {
  it('equals the first step worked out by hand: a step of η against the sign, after the decay', () => {
    const weights = { w: tf.tensor2d([[2, -4]]), b: tf.tensor1d([1]) };
    const gradients = { w: tf.tensor2d([[3, -0.001]]), b: tf.tensor1d([-7]) };
    const next = adamw(weights, gradients, zeroMoments(weights), OPTIONS);
    // 2 · (1 − 0.05) − 0.1, −4 · 0.95 + 0.1; a vector does not decay.
    expect(numbers(next.weights.w)[0]).toBeCloseTo(1.8, 6);
    expect(numbers(next.weights.w)[1]).toBeCloseTo(-3.7, 5);
    expect(numbers(next.weights.b)[0]).toBeCloseTo(1.1, 6);
    expect(numbers(next.moments.m.w)[0]).toBeCloseTo(0.3, 6);
    expect(numbers(next.moments.v.w)[0]).toBeCloseTo(0.09, 6);
    expect(next.moments.updates).toEqual({ w: 1, b: 1 });
  });

  it('stays with a double-precision oracle over 50 steps of random gradients', () => {
    const random = generator('adamw');
    const sequence = Array.from({ length: 50 }, () => Array.from({ length: 4 }, () => random() * 2 - 1));
    let weights: Record<string, tf.Tensor> = { matrix: tf.tensor2d([[1, -2]]), vector: tf.tensor1d([0.5, 3]) };
    const start = [1, -2, 0.5, 3];
    let moments = zeroMoments(weights);
    for (const [a, b, c, d] of sequence) {
      const gradients = { matrix: tf.tensor2d([[a!, b!]]), vector: tf.tensor1d([c!, d!]) };
      ({ weights, moments } = adamw(weights, gradients, moments, OPTIONS));
    }
    const got = [...numbers(weights.matrix), ...numbers(weights.vector)];
    for (const [i, value] of got.entries()) {
      const gradients = sequence.map((row) => row[i]!);
      expect(value).toBeCloseTo(scalarAdamW(start[i]!, gradients, OPTIONS, i < 2), 5);
    }
  });

  it('case 25: a weight without a gradient keeps value, moments and count, and the others never see its moments', () => {
    const gradient = (value: number) => ({ used: tf.tensor2d([[value]]) });
    // The unused weight comes first, where a memory by position would mix the two up.
    let weights: Record<string, tf.Tensor> = { head: tf.tensor2d([[5]]), used: tf.tensor2d([[1]]) };
    let moments = zeroMoments(weights);
    ({ weights, moments } = adamw(weights, { ...gradient(2), head: tf.tensor2d([[-3]]) }, moments, OPTIONS));
    const before = { weight: numbers(weights.head), m: numbers(moments.m.head), v: numbers(moments.v.head) };
    for (const value of [1, -1]) ({ weights, moments } = adamw(weights, gradient(value), moments, OPTIONS));
    expect({ weight: numbers(weights.head), m: numbers(moments.m.head), v: numbers(moments.v.head) }).toEqual(before);
    expect(moments.updates).toEqual({ head: 1, used: 3 });
    expect(numbers(weights.used)[0]).toBeCloseTo(scalarAdamW(1, [2, 1, -1], OPTIONS, true), 6);
    // And when its gradient comes back it goes on from its own second step.
    ({ weights, moments } = adamw(weights, { head: tf.tensor2d([[2]]) }, moments, OPTIONS));
    expect(numbers(weights.head)[0]).toBeCloseTo(scalarAdamW(5, [-3, 2], OPTIONS, true), 6);
  });

  it('returns only tensors of its own, so that disposing of the old ones leaves the new ones alive', () => {
    const weights = { w: tf.tensor2d([[1]]), unused: tf.tensor1d([7]) };
    const moments = zeroMoments(weights);
    const gradients = { w: tf.tensor2d([[1]]) };
    const before = tf.memory().numTensors;
    const next = adamw(weights, gradients, moments, OPTIONS);
    expect(tf.memory().numTensors).toBe(before + 6);
    for (const old of [weights, moments.m, moments.v, gradients]) tf.dispose(old);
    expect(numbers(next.weights.unused)).toEqual([7]);
    expect(numbers(next.moments.m.unused)).toEqual([0]);
  });

  it('refuses weights whose moments it does not know', () => {
    const weights = { w: tf.tensor1d([1]) };
    expect(() => adamw(weights, {}, { m: {}, v: {}, updates: {} }, OPTIONS)).toThrow('weight w: expected moments');
  });
});

describe('clipByGlobalNorm', () => {
  it('scales all gradients alike to the bound, as one vector: 3 and 4 have norm 5', () => {
    const gradients = { a: tf.tensor1d([3]), b: tf.tensor2d([[4]]) };
    const { gradients: clipped, norm } = clipByGlobalNorm(gradients, 1);
    expect(numbers(norm)).toEqual([5]);
    expect(numbers(clipped.a)[0]).toBeCloseTo(0.6, 6);
    expect(numbers(clipped.b)[0]).toBeCloseTo(0.8, 6);
  });

  it('leaves smaller ones, zeros, and all where there is no bound, as they are', () => {
    for (const [value, bound] of [
      [3, 10],
      [0, 1],
      [3, Number.POSITIVE_INFINITY],
    ] as const) {
      expect(numbers(clipByGlobalNorm({ a: tf.tensor1d([value]) }, bound).gradients.a)).toEqual([value]);
    }
    expect(numbers(clipByGlobalNorm({}, 1).norm)).toEqual([0]);
  });
});
