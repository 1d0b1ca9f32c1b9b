/** @module Sum and Mean over neighbouring axes, accumulated in double precision. The stock kernels transpose first, and add in single precision. */

import type { TensorInfo } from '@tensorflow/tfjs';
import * as tf from '@tensorflow/tfjs';
import { at32, sizeOf, type WasmBackend } from './heap.ts';

export interface ReduceArgs {
  readonly inputs: { readonly x: TensorInfo };
  readonly backend: WasmBackend;
  readonly attrs: { readonly axis: number | number[]; readonly keepDims: boolean };
}

/** From so many addends on single precision shows: 7e-5 of a sum of 343,000. */
const MANY = 8192;

/** True where `sum` and `mean` below can take it, and should: float32, axes side by side, and not a short run of the last axis, where the stock kernels are quicker. */
export function reducible({ inputs, attrs }: ReduceArgs): boolean {
  const { x } = inputs;
  const axes = axesOf(x, attrs.axis);
  if (x.dtype !== 'float32' || axes.some((axis, i) => axis !== (axes[0] as number) + i)) return false;
  return axes.at(-1) !== x.shape.length - 1 || sizeOf(x.shape.slice(axes[0])) >= MANY;
}

export function sum(args: ReduceArgs): TensorInfo {
  return reduce(args, () => 1);
}

export function mean(args: ReduceArgs): TensorInfo {
  return reduce(args, (count) => 1 / count);
}

function reduce({ inputs, backend, attrs }: ReduceArgs, scaleOf: (count: number) => number): TensorInfo {
  const { x } = inputs;
  const axes = axesOf(x, attrs.axis);
  const first = axes[0] ?? x.shape.length;
  const inside = new Set(axes);
  const shape = attrs.keepDims
    ? x.shape.map((n, i) => (inside.has(i) ? 1 : n))
    : x.shape.filter((_, i) => !inside.has(i));
  const out = backend.makeOutput(shape, 'float32');
  const outer = sizeOf(x.shape.slice(0, first));
  const count = sizeOf(x.shape.slice(first, first + axes.length));
  const inner = sizeOf(x.shape.slice(first + axes.length));
  const heap = backend.wasm.HEAPF32;
  const from = at32(backend, x);
  const to = at32(backend, out);
  const scale = scaleOf(count);
  if (inner === 1) rows(heap, from, to, outer, count, scale);
  else for (let i = 0; i < outer; i++) columns(heap, from + i * count * inner, to + i * inner, count, inner, scale);
  return out;
}

function rows(heap: Float32Array, from: number, to: number, outer: number, count: number, scale: number): void {
  for (let row = 0; row < outer; row++) {
    let p = from + row * count;
    const end = p + count;
    let s0 = 0;
    let s1 = 0;
    let s2 = 0;
    let s3 = 0;
    for (; p + 3 < end; p += 4) {
      s0 += heap[p] as number;
      s1 += heap[p + 1] as number;
      s2 += heap[p + 2] as number;
      s3 += heap[p + 3] as number;
    }
    for (; p < end; p++) s0 += heap[p] as number;
    heap[to + row] = (s0 + s1 + s2 + s3) * scale;
  }
}

/** Four rows at a time. */
function columns(heap: Float32Array, from: number, to: number, count: number, inner: number, scale: number): void {
  const sums = new Float64Array(inner);
  let p = from;
  let row = 0;
  for (; row + 3 < count; row += 4) {
    const p1 = p + inner;
    const p2 = p1 + inner;
    const p3 = p2 + inner;
    for (let i = 0; i < inner; i++) {
      const upper = (heap[p + i] as number) + (heap[p1 + i] as number);
      const lower = (heap[p2 + i] as number) + (heap[p3 + i] as number);
      sums[i] = (sums[i] as number) + (upper + lower);
    }
    p = p3 + inner;
  }
  for (; row < count; row++) {
    for (let i = 0; i < inner; i++) sums[i] = (sums[i] as number) + (heap[p + i] as number);
    p += inner;
  }
  for (let i = 0; i < inner; i++) heap[to + i] = (sums[i] as number) * scale;
}

function axesOf(x: TensorInfo, axis: number | number[]): number[] {
  return tf.util.parseAxisParam(axis, x.shape).toSorted((a, b) => a - b);
}
