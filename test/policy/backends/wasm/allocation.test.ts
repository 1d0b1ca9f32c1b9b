import * as tf from '@tensorflow/tfjs';
import { beforeAll, expect, test } from 'vitest';
import { selectBackend } from '../../../../src/policy/backends/select.ts';
import type { WasmBackend } from '../../../../src/policy/backends/wasm/heap.ts';

beforeAll(async () => {
  await selectBackend('wasm');
});

/** Its memory is never written, and so never the machine's. */
const untouched = (shape: [number, number]): tf.Tensor =>
  tf.engine().makeTensorFromTensorInfo((tf.backend() as unknown as WasmBackend).makeOutput(shape, 'float32'));

test('a tensor that there is no room for is an error, and those that are there keep their numbers', () => {
  const first = tf.tensor1d([1, 2, 3]);
  const held: tf.Tensor[] = [];
  expect(() => {
    // A heap of 4 GiB holds less than four of them.
    for (let i = 0; i < 4; i++) held.push(untouched([2 ** 14, 2 ** 14]));
  }).toThrow(expect.objectContaining({ code: 'OUT_OF_MEMORY' }));
  expect([...tf.add(first, 1).dataSync()]).toEqual([2, 3, 4]);
  expect([...first.dataSync()]).toEqual([1, 2, 3]);
  tf.dispose(held);
  expect(() => tf.dispose(untouched([2 ** 14, 2 ** 14]))).not.toThrow();
});

test('a tensor of 4 GiB and a little more is not taken for a little', () => {
  expect(() => untouched([2 ** 15, 2 ** 15 + 1])).toThrow('expected room for a tensor of 4096.1 MiB');
});
