import { expect, test } from 'vitest';
import { checkMemory } from '../../src/train/memory.ts';

const GIB = 2 ** 30;
const refusal = (...args: Parameters<typeof checkMemory>) => {
  try {
    checkMemory(...args);
  } catch (error) {
    return error as Error;
  }
  return undefined;
};

test('a model is refused where its weights, moments and gradients alone need more than there is', () => {
  // Eight copies of four bytes: 2^27 parameters fill 4 GiB.
  expect(refusal(2 ** 27, 'cpu', 4 * GIB)).toBeUndefined();
  expect(refusal(2 ** 27 + 1, 'cpu', 4 * GIB)).toMatchObject({ code: 'MODEL_TOO_LARGE', exitCode: 2 });
  expect(refusal(2 ** 28, 'cuda', 4 * GIB)).toBeUndefined();
});

test('WebAssembly has 4 GiB whatever the machine has', () => {
  expect(refusal(2 ** 28, 'cpu', 64 * GIB)).toBeUndefined();
  expect(refusal(2 ** 28, 'wasm', 64 * GIB, () => 'argument 1')?.message).toBe(
    'argument 1 policy: expected a model that can be trained in 4.0 GiB (backend wasm), found one of 268,435,456 parameters, which takes at least 8.0 GiB: weights, their moments and gradients',
  );
});
