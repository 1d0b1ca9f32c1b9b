/** @module Whether a model can be trained here at all: asked before it is made, since making it may take minutes that nothing can interrupt. */
import type { BackendName } from '../policy/backends/select.ts';
import { inputError } from '../records/errors.ts';
import type { Where } from './rig.ts';

/**
 * A step operation by operation holds each parameter eight times, as a number of 32 bits: the weight and its two moments, before and
 * after, the gradient, and the clipped gradient. A replayed step keeps the first three in place. What a batch needs comes on top.
 */
const COPIES: Readonly<Record<BackendName, number>> = { cuda: 4, native: 4, webgpu: 8, wasm: 8, cpu: 8 };
/** All that WebAssembly can address. */
const WASM_BYTES = 2 ** 32;

/** @param bytes memory of the machine. @throws MODEL_TOO_LARGE */
export function checkMemory(parameters: number, backend: BackendName, bytes: number, where?: Where): void {
  const limit = backend === 'wasm' ? Math.min(WASM_BYTES, bytes) : bytes;
  const needed = 4 * COPIES[backend] * parameters;
  if (needed <= limit) return;
  const gibibytes = (n: number) => `${(n / 2 ** 30).toFixed(1)} GiB`;
  const place = where === undefined ? '' : `${where(['policy', 'width'], 'value')} `;
  throw inputError(
    'MODEL_TOO_LARGE',
    `${place}policy: expected a model that can be trained in ${gibibytes(limit)}${backend === 'wasm' ? ' (backend wasm)' : ''}, found one of ${parameters.toLocaleString('en')} parameters, which takes at least ${gibibytes(needed)}: weights, their moments and gradients`,
    'Make policy.width, policy.hidden or policy.layers smaller.',
  );
}
