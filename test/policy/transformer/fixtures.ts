/** @module Small models with large weights, and the backends to run them on: the two that every machine has, and TensorFlow's where it is. */
import * as tf from '@tensorflow/tfjs';
import type { BackendName } from '../../../src/policy/backends/backend.ts';
import { selectBackend } from '../../../src/policy/backends/select.ts';
import type { NamedTensors, TokenRows, Weights } from '../../../src/policy/model.ts';
import type { TransformerConfig } from '../../../src/policy/transformer/config.ts';
import { weightShapes } from '../../../src/policy/transformer/weights.ts';
import { generator } from '../../../src/records/random.ts';
import { NATIVE, NATIVE_BACKEND } from '../backends/native.ts';

export const SMALL: TransformerConfig = {
  vocabulary: 11,
  layers: 2,
  width: 8,
  heads: 4,
  kvHeads: 2,
  headWidth: 6,
  hidden: 7,
  ropeBase: 100,
  epsilon: 1e-5,
  tied: true,
};

/** Agreement of float32 with double precision, and of the cached with the full pass: largest absolute difference of a logit. */
export const BACKENDS = [
  { backend: 'cpu', tolerance: 1e-6 },
  { backend: 'wasm', tolerance: 2e-5 },
  ...(NATIVE ? [{ backend: NATIVE_BACKEND, tolerance: 2e-5 } as const] : []),
] as const;

export async function use(backend: BackendName): Promise<void> {
  await selectBackend(backend);
}

/** Uniform in ±spread, norms in 1 ± spread: large enough that nothing is nearly linear. */
export function wildWeights(config: TransformerConfig, seed: string, spread = 0.6): Weights {
  const random = generator(seed);
  return Object.fromEntries(
    [...weightShapes(config)].map(([name, shape]) => {
      const centre = shape.length === 1 ? 1 : 0;
      const size = shape.reduce((a, b) => a * b, 1);
      const data = Float32Array.from({ length: size }, () => centre + spread * (2 * random() - 1));
      return [name, { shape, data }];
    }),
  );
}

export function tensors(weights: Weights): NamedTensors {
  return Object.fromEntries(
    Object.entries(weights).map(([name, w]) => [name, tf.tensor(w.data, [...w.shape], 'float32')]),
  );
}

/** Rows padded on the right with `padding`; every position of every row is scored. */
export function tokenRows(rows: readonly (readonly number[])[], padding = 0): TokenRows {
  const T = Math.max(...rows.map((row) => row.length));
  const ids = Int32Array.from(rows.flatMap((row) => [...row, ...Array<number>(T - row.length).fill(padding)]));
  const scored = rows.flatMap((row, b) => row.map((_, t) => b * T + t));
  return { ids: tf.tensor2d(ids, [rows.length, T], 'int32'), scored: tf.tensor1d(scored, 'int32') };
}

export function largestDifference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  if (a.length !== b.length) throw new Error(`expected equal lengths, found ${a.length} and ${b.length}`);
  let largest = 0;
  for (let i = 0; i < a.length; i++) {
    const difference = Math.abs(a[i]! - b[i]!);
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}
