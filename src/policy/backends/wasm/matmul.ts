/**
 * @module BatchMatMul by the module of our own. The stock kernel is fast (XNNPACK) only for one untransposed pair of matrices, and
 * keeps the packed B under its id alone, so that a reshaped B gives a wrong product.
 */
import type { TensorInfo } from '@tensorflow/tfjs';
import { at32, sizeOf, type WasmBackend } from './heap.ts';
import { own, pointer } from './module.ts';

export interface MatMulArgs {
  readonly inputs: { readonly a: TensorInfo; readonly b: TensorInfo };
  readonly backend: WasmBackend;
  readonly attrs: { readonly transposeA: boolean; readonly transposeB: boolean };
}

/**
 * a [.., M, K] or transposed, b [.., K, N] or transposed, float32; outer dimensions equal, or all of one side's 1. Each element is a
 * function of its row of A and its column of B alone, to the bit.
 */
export function batchMatMul({ inputs, backend, attrs }: MatMulArgs): TensorInfo {
  const { a, b } = inputs;
  const { transposeA, transposeB } = attrs;
  if (a.dtype !== 'float32' || b.dtype !== 'float32') {
    throw new Error(`matMul on wasm takes float32, found ${a.dtype} and ${b.dtype}`);
  }
  const [aRows, aColumns] = a.shape.slice(-2) as [number, number];
  const [bRows, bColumns] = b.shape.slice(-2) as [number, number];
  const m = transposeA ? aColumns : aRows;
  const k = transposeA ? aRows : aColumns;
  const n = transposeB ? bRows : bColumns;
  if (k !== (transposeB ? bColumns : bRows)) {
    throw new Error(`matMul: the inner sizes of [${a.shape}] and [${b.shape}] do not match`);
  }
  const aOuter = a.shape.slice(0, -2);
  const bOuter = b.shape.slice(0, -2);
  const aBatch = sizeOf(aOuter);
  const bBatch = sizeOf(bOuter);
  if (aBatch !== 1 && bBatch !== 1 && aOuter.join() !== bOuter.join()) {
    throw new Error(`matMul: the outer sizes of [${a.shape}] and [${b.shape}] are neither equal nor 1`);
  }
  const batch = aBatch === 1 ? bBatch : aBatch;
  const out = backend.makeOutput([...outerShape(aOuter, bOuter), m, n], 'float32');
  if (m === 0 || n === 0 || batch === 0) return out;
  if (k === 0) {
    const at = at32(backend, out);
    backend.wasm.HEAPF32.fill(0, at, at + batch * m * n);
    return out;
  }
  // One B for all: the rows of every batch are rows of one matrix.
  const joined = batch > 1 && bBatch === 1 && !transposeA;
  const { module, scratch } = own(backend);
  module.gemm(
    pointer(backend, a),
    pointer(backend, b),
    pointer(backend, out),
    joined ? 1 : batch,
    joined ? batch * m : m,
    k,
    n,
    aBatch === 1 ? 0 : 4 * m * k,
    transposeA ? 4 : 4 * k,
    transposeA ? 4 * m : 4,
    bBatch === 1 ? 0 : 4 * k * n,
    transposeB ? 4 * k : 4 * n,
    Number(transposeB),
    4 * m * n,
    4 * n,
    0,
    scratch,
  );
  return out;
}

/** The stock kernels' rule: the longer one's outer dimensions, ones replaced by the other side's. */
function outerShape(a: readonly number[], b: readonly number[]): number[] {
  const rank = Math.max(a.length, b.length);
  return Array.from({ length: rank }, (_, i) => {
    const x = a[a.length - rank + i] ?? 1;
    const y = b[b.length - rank + i] ?? 1;
    return x === 1 ? y : x;
  });
}
