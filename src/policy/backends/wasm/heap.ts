/** @module The part of tfjs's wasm backend that our kernels work on: tensors as offsets into one WebAssembly heap. */
import type { DataType, TensorInfo } from '@tensorflow/tfjs';

export interface HeapTensor {
  /** Bytes. */
  readonly memoryOffset: number;
}

/**
 * tfjs's `BackendWasm`, as far as it is used. An allocation may grow the heap and detach every view of it: take the views
 * (`wasm.HEAPF32` and its like) after the last `makeOutput` of a kernel.
 */
export interface WasmBackend {
  readonly wasm: {
    readonly HEAPU8: Uint8Array;
    readonly HEAP32: Int32Array;
    readonly HEAPF32: Float32Array;
    /** Bytes → pointer; 0 where there is no room. */
    _malloc: (bytes: number) => number;
    _free(pointer: number): void;
    /** Exports of tfjs's module; the memory is a WebAssembly.Memory. */
    readonly asm: { readonly memory: object };
  };
  readonly dataIdMap: { get(dataId: object): HeapTensor };
  makeOutput(shape: readonly number[], dtype: DataType): TensorInfo;
  incRef(dataId: object): void;
  disposeData(dataId: object): boolean;
}

/** Index of a tensor's first element in `HEAPF32` or `HEAP32`. */
export function at32(backend: WasmBackend, info: TensorInfo): number {
  return backend.dataIdMap.get(info.dataId).memoryOffset >>> 2;
}

export function sizeOf(shape: readonly number[]): number {
  let size = 1;
  for (const n of shape) size *= n;
  return size;
}

/** Elements of any type as bit patterns: int32 for four bytes each, bytes for bool. */
export interface Bits {
  readonly heap: Int32Array | Uint8Array;
  /** Elements begin at memoryOffset >> shift. */
  readonly shift: 0 | 2;
}

export function bitsOf(backend: WasmBackend, dtype: DataType): Bits {
  return dtype === 'bool' ? { heap: backend.wasm.HEAPU8, shift: 0 } : { heap: backend.wasm.HEAP32, shift: 2 };
}

/** Index of a tensor's first element in its `Bits`. */
export function atBits(backend: WasmBackend, info: TensorInfo, shift: number): number {
  return backend.dataIdMap.get(info.dataId).memoryOffset >>> shift;
}

/** The same data under another shape or name: nothing is copied, and tfjs counts the reference. */
export function sameData(backend: WasmBackend, x: TensorInfo, shape: readonly number[]): TensorInfo {
  backend.incRef(x.dataId);
  return { dataId: x.dataId, shape: [...shape], dtype: x.dtype };
}
