/** @module Identity and Cast: by reference where the bits stay the same. The stock kernels copy, some 200 times a training step. */
import type { DataType, TensorInfo } from '@tensorflow/tfjs';
import { atBits, sameData, sizeOf, type WasmBackend } from './heap.ts';

export function identity(args: {
  readonly inputs: { readonly x: TensorInfo };
  readonly backend: WasmBackend;
}): TensorInfo {
  const { x } = args.inputs;
  return sameData(args.backend, x, x.shape);
}

/** Towards int32 a fraction is cut off, towards bool everything but 0 is 1, as TensorFlow does. */
export function cast(args: {
  readonly inputs: { readonly x: TensorInfo };
  readonly backend: WasmBackend;
  readonly attrs: { readonly dtype: DataType };
}): TensorInfo {
  const { inputs, backend, attrs } = args;
  const { x } = inputs;
  if (x.dtype === attrs.dtype) return sameData(backend, x, x.shape);
  const out = backend.makeOutput(x.shape, attrs.dtype);
  const size = sizeOf(x.shape);
  const from = values(backend, x, size);
  const to = values(backend, out, size);
  if (attrs.dtype === 'bool') {
    for (let i = 0; i < size; i++) to[i] = from[i] === 0 ? 0 : 1;
  } else {
    to.set(from);
  }
  return out;
}

function values(backend: WasmBackend, x: TensorInfo, size: number): Float32Array | Int32Array | Uint8Array {
  const { HEAPF32, HEAP32, HEAPU8 } = backend.wasm;
  const heap = x.dtype === 'float32' ? HEAPF32 : x.dtype === 'int32' ? HEAP32 : HEAPU8;
  const at = atBits(backend, x, x.dtype === 'bool' ? 0 : 2);
  return heap.subarray(at, at + size);
}
