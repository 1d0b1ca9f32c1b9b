/** @module Memory for tensors on wasm: what cannot be had is an error. tfjs takes the null pointer that says so for a place, and every tensor would lie at the beginning of the heap. */
import { IsogymError } from '../../../records/errors.ts';
import type { WasmBackend } from './heap.ts';

/** Pointers are of 32 bits: of more bytes than that malloc sees the remainder. */
const ADDRESSABLE = 2 ** 32;

/** From here on the backend's `_malloc` throws OUT_OF_MEMORY. Once for each backend instance. */
export function checkAllocations({ wasm }: WasmBackend): void {
  // Emscripten's stub puts the true one in its place when it is first called.
  wasm._free(wasm._malloc(1));
  const malloc = wasm._malloc;
  wasm._malloc = (bytes) => {
    const place = bytes < ADDRESSABLE ? malloc(bytes) : 0;
    if (place !== 0) return place;
    const [wanted, held] = [bytes, wasm.HEAPU8.length].map((n) => `${(n / 2 ** 20).toFixed(1)} MiB`);
    throw new IsogymError(
      'OUT_OF_MEMORY',
      `backend wasm: expected room for a tensor of ${wanted}, found none in a heap of ${held}; WebAssembly addresses 4 GiB`,
      { hint: 'Make batch.microTokens, rollouts.live or the model smaller, or take another backend.' },
    );
  };
}
