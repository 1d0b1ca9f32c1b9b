import * as tf from '@tensorflow/tfjs';
import { beforeAll, expect, test } from 'vitest';
import { selectBackend } from '../../../../src/policy/backends/select.ts';
import { generator } from '../../../../src/records/random.ts';

const random = generator('matmul');
const floats = (...shape: number[]) =>
  tf.tensor(
    Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => random() - 0.5),
    shape,
  );

beforeAll(async () => {
  await selectBackend('wasm');
});

// Continuous batching relies on it: an episode's logits must not depend on who is decoded beside it.
test.each([
  [23, 64, 40],
  [13, 300, 9],
  [6, 5, 3],
  [30, 16, 12],
])('each row of a product of %i rows is to the bit what it is alone, and among any others', async (m, k, n) => {
  for (const transposeB of [false, true]) {
    const b = transposeB ? floats(n, k) : floats(k, n);
    const a = floats(m, k);
    const whole = await tf.matMul(a, b, false, transposeB).array();
    for (const rows of [1, 2, 3, 4, 5, m - 1]) {
      for (const from of [0, m - rows]) {
        const some = tf.slice(a, [from, 0], [rows, k]);
        expect(await tf.matMul(some, b, false, transposeB).array()).toEqual(
          (whole as number[][]).slice(from, from + rows),
        );
        expect(await tf.matMul(tf.transpose(some), b, true, transposeB).array()).toEqual(
          (whole as number[][]).slice(from, from + rows),
        );
      }
    }
  }
});

test('products go on being right while the heap grows under them', async () => {
  const a = floats(40, 24);
  const b = floats(24, 8);
  const before = await tf.matMul(a, b).array();
  const bytes = () => (tf.backend() as unknown as { wasm: { HEAPU8: Uint8Array } }).wasm.HEAPU8.byteLength;
  const small = bytes();
  const kept: tf.Tensor[] = [];
  while (bytes() < small + 2 ** 25) kept.push(tf.zeros([1024, 1024]));
  expect(await tf.matMul(a, b).array()).toEqual(before);
  tf.dispose(kept);
});
