import * as tf from '@tensorflow/tfjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { TokenRows, Weights } from '../../../src/policy/model.ts';
import type { TransformerConfig } from '../../../src/policy/transformer/config.ts';
import { transformer } from '../../../src/policy/transformer/model.ts';
import { generator } from '../../../src/records/random.ts';
import { BACKENDS, largestDifference, SMALL, tensors, tokenRows, use, wildWeights } from './fixtures.ts';
import { doubles, oracleLogits } from './oracle.ts';

const ROWS = [
  [3, 1, 4, 1, 5, 9, 2],
  [6, 10],
  [0, 7, 7, 8, 2],
];

/** Logits at every position of every row, row after row. */
function logits(config: TransformerConfig, weights: Weights, rows: TokenRows): Float32Array {
  return tf.tidy(() => transformer(config).logits(tensors(weights), rows).dataSync()) as Float32Array;
}

const GRADIENT_ROWS = [
  [3, 1, 4, 1],
  [5, 9],
];
const GRADIENT_SCORED = [0, 2, 3, 5];
const CONFIGS = [SMALL, { ...SMALL, tied: false }];

/** A fixed direction in which the logits are summed up to a loss. */
const direction = (config: TransformerConfig): Float32Array => {
  const random = generator('direction');
  return Float32Array.from({ length: GRADIENT_SCORED.length * config.vocabulary }, () => 2 * random() - 1);
};

/** Central differences of the plain loops, by weight. */
const centralDifferences = CONFIGS.map((config) => {
  const plain = doubles(wildWeights(config, 'gradient'));
  const along = direction(config);
  const loss = (): number => {
    const [first, second] = GRADIENT_ROWS.map((ids) => oracleLogits(config, plain, ids));
    const out = [first![0]!, first![2]!, first![3]!, second![1]!].flat();
    return out.reduce((sum, value, i) => sum + value * along[i]!, 0);
  };
  const step = 1e-5;
  return Object.fromEntries(
    Object.entries(plain).map(([name, { data }]) => [
      name,
      data.map((value, j) => {
        data[j] = value + step;
        const above = loss();
        data[j] = value - step;
        const below = loss();
        data[j] = value;
        return (above - below) / (2 * step);
      }),
    ]),
  );
});

describe.each(BACKENDS)('on $backend the full pass', ({ backend, tolerance }) => {
  beforeEach(async () => {
    await use(backend);
    tf.engine().startScope();
  });
  afterEach(() => tf.engine().endScope());

  it.each([
    ['tied, grouped', SMALL],
    ['untied', { ...SMALL, tied: false }],
    ['every head its own key', { ...SMALL, kvHeads: 4 }],
    ['one key head for all', { ...SMALL, kvHeads: 1 }],
    ['one layer, one head', { ...SMALL, layers: 1, heads: 1, kvHeads: 1 }],
  ] as const)('equals plain loops in double precision (%s)', (_, config) => {
    const weights = wildWeights(config, 'oracle');
    const expected = ROWS.flatMap((ids) => oracleLogits(config, doubles(weights), ids).flat());
    expect(Math.max(...expected.map(Math.abs))).toBeGreaterThan(1);
    expect(largestDifference(logits(config, weights, tokenRows(ROWS)), expected)).toBeLessThan(10 * tolerance);
  });

  it('scores only what is asked for, in the order asked', () => {
    const weights = wildWeights(SMALL, 'scored');
    const all = tokenRows(ROWS);
    const some = { ids: all.ids, scored: tf.tensor1d([16, 0, 3], 'int32') };
    const found = logits(SMALL, weights, some);
    const expected = [oracleLogits(SMALL, doubles(weights), ROWS[2]!)[2]!]
      .concat([0, 3].map((t) => oracleLogits(SMALL, doubles(weights), ROWS[0]!)[t]!))
      .flat();
    expect(largestDifference(found, expected)).toBeLessThan(10 * tolerance);
  });

  it.each(CONFIGS.map((config, i) => ({ config, expected: centralDifferences[i]! })))(
    'has the gradient of the plain loops, by central differences, in every weight (tied: $config.tied)',
    ({ config, expected }) => {
      const weights = tensors(wildWeights(config, 'gradient'));
      const names = Object.keys(weights);
      const { ids } = tokenRows(GRADIENT_ROWS);
      const scored = tf.tensor1d(GRADIENT_SCORED, 'int32');
      const along = tf.tensor2d(direction(config), [scored.size, config.vocabulary]);
      const loss = (...values: tf.Tensor[]): tf.Scalar => {
        const named = Object.fromEntries(names.map((name, i) => [name, values[i]!]));
        return tf.sum(tf.mul(transformer(config).logits(named, { ids, scored }), along));
      };
      const gradients = tf.grads(loss)(names.map((name) => weights[name]!));
      expect(Object.keys(expected)).toEqual(names);
      for (const [i, name] of names.entries()) {
        const largest = Math.max(...expected[name]!.map(Math.abs));
        expect(largest, name).toBeGreaterThan(1e-3);
        const off = largestDifference(gradients[i]!.dataSync(), expected[name]!);
        expect(off / Math.max(1, largest), name).toBeLessThan(tolerance);
      }
    },
  );

  it('sees nothing of what comes later, and nothing of the padding', () => {
    const weights = wildWeights(SMALL, 'causal');
    const V = SMALL.vocabulary;
    const before = logits(SMALL, weights, tokenRows([[3, 1, 4, 1, 5]]));
    const after = logits(SMALL, weights, tokenRows([[3, 1, 4, 9, 2]]));
    expect(after.subarray(0, 3 * V)).toEqual(before.subarray(0, 3 * V));
    expect(after.subarray(3 * V)).not.toEqual(before.subarray(3 * V));
    const zeros = logits(SMALL, weights, tokenRows(ROWS, 0));
    expect(logits(SMALL, weights, tokenRows(ROWS, 8))).toEqual(zeros);
  });

  it('gives grouped heads what repeated heads would give', () => {
    const { headWidth, heads, kvHeads } = SMALL;
    const grouped = wildWeights(SMALL, 'grouped');
    const group = heads / kvHeads;
    const repeated = Object.fromEntries(
      Object.entries(grouped).map(([name, w]) => {
        if (!/[kv]_proj/.test(name)) return [name, w];
        const [rows, columns] = w.shape as [number, number];
        const data = Float32Array.from({ length: rows * columns * group }, (_, index) => {
          const row = Math.floor(index / (columns * group));
          const column = index % (columns * group);
          const shared = Math.floor(column / headWidth / group);
          return w.data[row * columns + shared * headWidth + (column % headWidth)]!;
        });
        return [name, { shape: [rows, columns * group], data }];
      }),
    );
    const rows = tokenRows(ROWS);
    const found = logits({ ...SMALL, kvHeads: heads }, repeated, rows);
    expect(largestDifference(found, logits(SMALL, grouped, rows))).toBeLessThan(tolerance * 10);
  });

  it('says which weight is missing', () => {
    const { 'model.norm.weight': _, ...weights } = tensors(wildWeights(SMALL, 'missing'));
    expect(() => transformer(SMALL).logits(weights, tokenRows(ROWS))).toThrow(
      /expected a weight named model.norm.weight/,
    );
  });

  it('takes few operations: an eager backend pays for each, whatever its size', async () => {
    const weights = tensors(wildWeights(SMALL, 'operations'));
    const names = Object.keys(weights);
    const rows = tokenRows(ROWS);
    const loss = (...values: tf.Tensor[]): tf.Scalar =>
      tf.sum(transformer(SMALL).logits(Object.fromEntries(names.map((name, i) => [name, values[i]!])), rows));
    // Reshapes and identities move nothing; an entry that is no kernel is one of our own gradients' scopes.
    const count = async (work: () => tf.TensorContainer): Promise<number> => {
      const { kernels } = await tf.profile(() => tf.tidy(work));
      const free = new Set(['Reshape', 'Identity']);
      return kernels.filter(({ name }) => !free.has(name) && tf.getKernel(name, backend) !== undefined).length;
    };
    expect(await count(() => transformer(SMALL).logits(weights, rows))).toBeLessThanOrEqual(90);
    expect(await count(() => tf.grads(loss)(names.map((name) => weights[name]!)))).toBeLessThanOrEqual(230);
  });

  it('leaves no tensor behind, forward and backward', () => {
    const weights = wildWeights(SMALL, 'leak');
    const model = transformer(SMALL);
    const live = Object.fromEntries(
      Object.entries(tensors(weights)).map(([n, t]) => [n, tf.variable(t, true, `leak/${n}`)]),
    );
    const rows = tokenRows(ROWS);
    const count = tf.memory().numTensors;
    for (let i = 0; i < 3; i++) {
      const { value, grads } = tf.tidy(() => tf.variableGrads(() => tf.sum(tf.square(model.logits(live, rows)))));
      expect(Object.keys(grads).length).toBe(Object.keys(live).length);
      tf.dispose([value, grads]);
      model.logits(live, rows).dispose();
      expect(tf.memory().numTensors).toBe(count);
    }
    tf.dispose(live);
  });
});
