/**
 * @module BatchMatMul. The stock kernel is fast (XNNPACK) only for one untransposed pair of matrices, and keeps the packed B
 * under its id alone, so that a reshaped B gives a wrong product. Here every product becomes untransposed pairs.
 */
import type { TensorInfo } from '@tensorflow/tfjs';
import { at32, sizeOf, type WasmBackend } from './heap.ts';
import { transposeMatrix } from './transpose.ts';

/** Below so many multiplications a plain loop costs less than a call into XNNPACK (about 4 µs, most of it packing B). */
const SMALL = 2048;

/** Ids that tfjs, counting from 1, does not reach; registered for one call and freed after it, packed weights included. */
const A_ID = 0xfffffff0;
const B_ID = 0xfffffff1;
const OUT_ID = 0xfffffff2;

/** Where the two shapes of a call stand in the heap (bytes), one place for each backend instance. */
const shapePlaces = new WeakMap<WasmBackend, number>();
/** Rows of B when its packed form was made; the data of a tensor never changes. */
const packedRows = new WeakMap<object, number>();

export interface MatMulArgs {
  readonly inputs: { readonly a: TensorInfo; readonly b: TensorInfo };
  readonly backend: WasmBackend;
  readonly attrs: { readonly transposeA: boolean; readonly transposeB: boolean };
}

/** a [.., M, K] or transposed, b [.., K, N] or transposed, float32; outer dimensions equal, or all of one side's 1. */
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
  } else if (batch > 1 && bBatch === 1 && !transposeA) {
    // One B for all: the rows of every batch are rows of one matrix.
    product(backend, a, b, out, { batch: 1, aBatch: 1, bBatch: 1, m: batch * m, k, n, transposeA, transposeB });
  } else {
    product(backend, a, b, out, { batch, aBatch, bBatch, m, k, n, transposeA, transposeB });
  }
  return out;
}

interface Sizes {
  readonly batch: number;
  readonly aBatch: number;
  readonly bBatch: number;
  readonly m: number;
  readonly k: number;
  readonly n: number;
  readonly transposeA: boolean;
  readonly transposeB: boolean;
}

/** Time to pack an element of B in XNNPACK, in units of the time to transpose one (measured: 5 ns and 1.25 ns). */
const PACK = 4;

function product(backend: WasmBackend, a: TensorInfo, b: TensorInfo, out: TensorInfo, s: Sizes): void {
  const { batch, m, k, n, transposeA, transposeB } = s;
  if (m * k * n < SMALL) {
    loops(backend, a, b, out, s);
    return;
  }
  // A·B as it stands, or as (Bᵀ·Aᵀ)ᵀ: whichever moves less. A plain product stays as it is, since its B, a weight, is packed once.
  const direct = PACK * k * n + (transposeA ? m * k : 0) + (transposeB ? k * n : 0);
  const turned = PACK * m * k + m * n + (transposeA ? 0 : m * k) + (transposeB ? 0 : k * n);
  if (direct <= turned || !(transposeA || transposeB)) {
    pairs(backend, a, b, out, s);
    return;
  }
  const outT = backend.makeOutput([batch, n, m], 'float32');
  pairs(backend, b, a, outT, {
    batch,
    aBatch: s.bBatch,
    bBatch: s.aBatch,
    m: n,
    k,
    n: m,
    transposeA: !transposeB,
    transposeB: !transposeA,
  });
  transposeEach(backend, outT, out, batch, n, m);
  backend.disposeData(outT.dataId);
}

/** Transposes what has to be, then multiplies. */
function pairs(backend: WasmBackend, a: TensorInfo, b: TensorInfo, out: TensorInfo, s: Sizes): void {
  const { m, k, n } = s;
  const left = s.transposeA ? transposed(backend, a, s.aBatch, k, m) : a;
  const right = s.transposeB ? transposed(backend, b, s.bBatch, n, k) : b;
  untransposed(backend, left, right, out, s);
  if (left !== a) backend.disposeData(left.dataId);
  if (right !== b) backend.disposeData(right.dataId);
}

/** [batch, rows, columns] → a new [batch, columns, rows]. */
function transposed(backend: WasmBackend, x: TensorInfo, batch: number, rows: number, columns: number): TensorInfo {
  const out = backend.makeOutput([batch, columns, rows], 'float32');
  transposeEach(backend, x, out, batch, rows, columns);
  return out;
}

function transposeEach(
  backend: WasmBackend,
  x: TensorInfo,
  out: TensorInfo,
  batch: number,
  rows: number,
  columns: number,
): void {
  const from = at32(backend, x);
  const to = at32(backend, out);
  const size = rows * columns;
  for (let i = 0; i < batch; i++) {
    transposeMatrix(backend.wasm.HEAP32, from + i * size, to + i * size, rows, columns);
  }
}

function untransposed(backend: WasmBackend, a: TensorInfo, b: TensorInfo, out: TensorInfo, s: Sizes): void {
  const { m, k, n } = s;
  const { wasm } = backend;
  const { registerTensor, disposeData } = wasm.tfjs;
  let shapes = shapePlaces.get(backend);
  if (shapes === undefined) {
    shapes = wasm._malloc(6 * Int32Array.BYTES_PER_ELEMENT) >>> 0;
    shapePlaces.set(backend, shapes);
  }
  wasm.HEAP32.set([1, m, k, 1, k, n], shapes >>> 2);
  const bShape = shapes + 3 * Int32Array.BYTES_PER_ELEMENT;
  const aData = backend.dataIdMap.get(a.dataId);
  const bData = backend.dataIdMap.get(b.dataId);
  const outData = backend.dataIdMap.get(out.dataId);
  if (s.batch === 1) {
    const rows = packedRows.get(b.dataId);
    if (rows === undefined) packedRows.set(b.dataId, k);
    if (rows === undefined || rows === k) {
      wasm._BatchMatMul(aData.id, shapes, 3, bData.id, bShape, 3, 0, 0, outData.id);
      return;
    }
  }
  const aStep = s.aBatch === 1 ? 0 : m * k * 4;
  const bStep = s.bBatch === 1 ? 0 : k * n * 4;
  for (let i = 0; i < s.batch; i++) {
    registerTensor(A_ID, m * k, aData.memoryOffset + i * aStep);
    registerTensor(B_ID, k * n, bData.memoryOffset + i * bStep);
    registerTensor(OUT_ID, m * n, outData.memoryOffset + i * m * n * 4);
    wasm._BatchMatMul(A_ID, shapes, 3, B_ID, bShape, 3, 0, 0, OUT_ID);
    disposeData(A_ID);
    disposeData(B_ID);
    disposeData(OUT_ID);
  }
}

/** Small products, in double precision, whatever is transposed: four columns at a time. */
function loops(backend: WasmBackend, a: TensorInfo, b: TensorInfo, out: TensorInfo, s: Sizes): void {
  const { batch, m, k, n } = s;
  const heap = backend.wasm.HEAPF32;
  const aRow = s.transposeA ? 1 : k;
  const aInner = s.transposeA ? m : 1;
  const bInner = s.transposeB ? 1 : n;
  const bColumn = s.transposeB ? k : 1;
  const aStep = s.aBatch === 1 ? 0 : m * k;
  const bStep = s.bBatch === 1 ? 0 : k * n;
  const aStart = at32(backend, a);
  const bStart = at32(backend, b);
  let to = at32(backend, out);
  for (let i = 0; i < batch; i++) {
    for (let row = 0; row < m; row++) {
      const aAt = aStart + i * aStep + row * aRow;
      const bAt = bStart + i * bStep;
      let column = 0;
      for (; column + 3 < n; column += 4) {
        let p = aAt;
        let q0 = bAt + column * bColumn;
        let q1 = q0 + bColumn;
        let q2 = q1 + bColumn;
        let q3 = q2 + bColumn;
        let s0 = 0;
        let s1 = 0;
        let s2 = 0;
        let s3 = 0;
        for (let inner = 0; inner < k; inner++) {
          const x = heap[p] as number;
          s0 += x * (heap[q0] as number);
          s1 += x * (heap[q1] as number);
          s2 += x * (heap[q2] as number);
          s3 += x * (heap[q3] as number);
          p += aInner;
          q0 += bInner;
          q1 += bInner;
          q2 += bInner;
          q3 += bInner;
        }
        heap[to] = s0;
        heap[to + 1] = s1;
        heap[to + 2] = s2;
        heap[to + 3] = s3;
        to += 4;
      }
      for (; column < n; column++) {
        let p = aAt;
        let q = bAt + column * bColumn;
        let sum = 0;
        for (let inner = 0; inner < k; inner++) {
          sum += (heap[p] as number) * (heap[q] as number);
          p += aInner;
          q += bInner;
        }
        heap[to] = sum;
        to++;
      }
    }
  }
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
