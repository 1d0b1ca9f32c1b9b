/** @module Kernels that move blocks of elements and compute nothing: gather, concat, stack, split, unstack, slice; and one-hot rows. */

import type { TensorInfo } from '@tensorflow/tfjs';
import * as tf from '@tensorflow/tfjs';
import { atBits, type Bits, bitsOf, sameData, sizeOf, type WasmBackend } from './heap.ts';

/** From here on one `copyWithin` costs less than a loop. */
const LONG = 64;

/** `count` blocks of `size` elements, whose starts lie `fromStep` and `toStep` apart. */
function copyBlocks(
  heap: Bits['heap'],
  from: number,
  fromStep: number,
  to: number,
  toStep: number,
  size: number,
  count: number,
): void {
  for (let block = 0; block < count; block++) {
    if (size >= LONG) {
      heap.copyWithin(to, from, from + size);
    } else {
      for (let i = 0; i < size; i++) heap[to + i] = heap[from + i] as number;
    }
    from += fromStep;
    to += toStep;
  }
}

interface Args<Inputs, Attrs> {
  readonly inputs: Inputs;
  readonly backend: WasmBackend;
  readonly attrs: Attrs;
}

/** The stock kernel is wrong with `batchDims`, and slow (4 ns an element). */
export function gather(
  args: Args<
    { readonly x: TensorInfo; readonly indices: TensorInfo },
    { readonly axis: number; readonly batchDims: number }
  >,
): TensorInfo {
  const { inputs, backend, attrs } = args;
  const { x, indices } = inputs;
  const axis = tf.util.parseAxisParam(attrs.axis, x.shape)[0] ?? 0;
  const info = tf.backend_util.segment_util.collectGatherOpShapeInfo(
    x as tf.Tensor,
    indices as tf.Tensor,
    axis,
    attrs.batchDims,
  );
  const ids = atBits(backend, indices, 2);
  checkIndices(backend.wasm.HEAP32, ids, sizeOf(indices.shape), info.dimSize);
  const out = backend.makeOutput(info.outputShape, x.dtype);
  const { heap, shift } = bitsOf(backend, x.dtype);
  const { HEAP32 } = backend.wasm;
  const count = info.batchSize === 0 ? 0 : sizeOf(indices.shape) / info.batchSize;
  const xAt = atBits(backend, x, shift);
  let to = atBits(backend, out, shift);
  for (let batch = 0; batch < info.batchSize; batch++) {
    for (let outer = 0; outer < info.outerSize; outer++) {
      const rows = xAt + (batch * info.outerSize + outer) * info.dimSize * info.sliceSize;
      for (let i = 0; i < count; i++) {
        const id = HEAP32[ids + batch * count + i] as number;
        copyBlocks(heap, rows + id * info.sliceSize, 0, to, 0, info.sliceSize, 1);
        to += info.sliceSize;
      }
    }
  }
  return out;
}

/** Before anything is allocated that an error would leave behind. */
function checkIndices(heap: Int32Array, from: number, count: number, below: number): void {
  for (let i = 0; i < count; i++) {
    const index = heap[from + i] as number;
    if (index < 0 || index >= below) throw new Error(`gather: expected indices within [0, ${below}), found ${index}`);
  }
}

/** The stock kernel makes two views for each block: slow where the blocks are short. */
export function concat(args: Args<readonly TensorInfo[], { readonly axis: number }>): TensorInfo {
  const { inputs, backend, attrs } = args;
  const parts = Object.values(inputs);
  const shapes = parts.map((part) => part.shape);
  const axis = tf.util.parseAxisParam(attrs.axis, shapes[0] ?? [])[0] ?? 0;
  tf.backend_util.assertParamsConsistent(shapes, axis);
  const shape = tf.backend_util.computeOutShape(shapes, axis);
  return joined(backend, parts, shape, sizeOf(shape.slice(0, axis)));
}

export function pack(args: Args<readonly TensorInfo[], { readonly axis: number }>): TensorInfo {
  const { inputs, backend, attrs } = args;
  const parts = Object.values(inputs);
  const shape = [...(parts[0]?.shape ?? [])];
  for (const part of parts) tf.util.assertShapesMatch(part.shape, shape, 'stack:');
  const axis = attrs.axis < 0 ? attrs.axis + shape.length + 1 : attrs.axis;
  const outer = sizeOf(shape.slice(0, axis));
  shape.splice(axis, 0, parts.length);
  return joined(backend, parts, shape, outer);
}

/** Block after block of each part, `outer` times. */
function joined(
  backend: WasmBackend,
  parts: readonly TensorInfo[],
  shape: readonly number[],
  outer: number,
): TensorInfo {
  const filled = parts.filter((part) => sizeOf(part.shape) > 0);
  const [first] = filled;
  if (filled.length === 1 && first !== undefined) return sameData(backend, first, shape);
  const out = backend.makeOutput(shape, (first ?? parts[0])?.dtype ?? 'float32');
  const { heap, shift } = bitsOf(backend, out.dtype);
  const step = outer === 0 ? 0 : sizeOf(shape) / outer;
  let start = atBits(backend, out, shift);
  for (const part of filled) {
    const block = sizeOf(part.shape) / outer;
    const from = atBits(backend, part, shift);
    copyBlocks(heap, from, block, start, step, block, outer);
    start += block;
  }
  return out;
}

/** The stock kernel copies the whole input once for each part. */
export function splitV(
  args: Args<{ readonly x: TensorInfo }, { readonly numOrSizeSplits: number | number[]; readonly axis: number }>,
): TensorInfo[] {
  const { inputs, backend, attrs } = args;
  const { x } = inputs;
  const axis = tf.util.parseAxisParam(attrs.axis, x.shape)[0] ?? 0;
  const sizes = tf.backend_util.prepareSplitSize(x as tf.Tensor, attrs.numOrSizeSplits, axis);
  let start = 0;
  return sizes.map((size) => {
    const part = cut(backend, x, beginAt(x, axis, start), withSize(x, axis, size));
    start += size;
    return part;
  });
}

export function unpack(args: Args<{ readonly value: TensorInfo }, { readonly axis: number }>): TensorInfo[] {
  const { inputs, backend, attrs } = args;
  const { value } = inputs;
  const axis = tf.util.parseAxisParam(attrs.axis, value.shape)[0] ?? 0;
  return Array.from({ length: value.shape[axis] ?? 0 }, (_, i) => {
    const part = cut(backend, value, beginAt(value, axis, i), withSize(value, axis, 1));
    return { ...part, shape: value.shape.toSpliced(axis, 1) };
  });
}

function beginAt(x: TensorInfo, axis: number, start: number): number[] {
  return x.shape.map((_, i) => (i === axis ? start : 0));
}

function withSize(x: TensorInfo, axis: number, size: number): number[] {
  return x.shape.map((n, i) => (i === axis ? size : n));
}

/** The stock kernel copies the whole input first. */
export function slice(
  args: Args<{ readonly x: TensorInfo }, { readonly begin: number | number[]; readonly size: number | number[] }>,
): TensorInfo {
  const { inputs, backend, attrs } = args;
  const [begin, size] = tf.slice_util.parseSliceParams(inputs.x, attrs.begin, attrs.size) as [number[], number[]];
  tf.slice_util.assertParamsValid(inputs.x, begin, size);
  return cut(backend, inputs.x, begin, size);
}

/** Part of a tensor. What is taken whole at the end belongs to the block; runs of whole axes before it are walked in one go. */
function cut(backend: WasmBackend, x: TensorInfo, begin: readonly number[], size: readonly number[]): TensorInfo {
  const partial = size.flatMap((n, axis) => (n === x.shape[axis] ? [] : [axis]));
  if (partial.length === 0) return sameData(backend, x, size);
  const out = backend.makeOutput(size, x.dtype);
  if (sizeOf(size) === 0) return out;
  const { heap, shift } = bitsOf(backend, x.dtype);
  let to = atBits(backend, out, shift);
  /** From partial axis number `i` on: `runs` blocks, each a stretch of x that begins at that axis. */
  const walk = (i: number, at: number, runs: number): void => {
    const axis = partial[i] as number;
    const inner = sizeOf(x.shape.slice(axis + 1));
    const step = (x.shape[axis] as number) * inner;
    const start = at + (begin[axis] as number) * inner;
    const next = partial[i + 1];
    if (next === undefined) {
      const block = (size[axis] as number) * inner;
      copyBlocks(heap, start, step, to, block, block, runs);
      to += block * runs;
      return;
    }
    const innerRuns = sizeOf(x.shape.slice(axis + 1, next));
    for (let run = 0; run < runs; run++) {
      for (let j = 0; j < (size[axis] as number); j++) walk(i + 1, start + run * step + j * inner, innerRuns);
    }
  };
  walk(0, atBits(backend, x, shift), sizeOf(x.shape.slice(0, partial[0])));
  return out;
}

/** The stock kernel writes whole numbers whatever the type: as float32 its ones are 1e-45. An index outside [0, depth) gives a row of `offValue`. */
export function oneHot(
  args: Args<
    { readonly indices: TensorInfo },
    { readonly depth: number; readonly onValue: number; readonly offValue: number; readonly dtype: tf.DataType }
  >,
): TensorInfo {
  const { inputs, backend, attrs } = args;
  const { depth, onValue, offValue, dtype } = attrs;
  const out = backend.makeOutput([...inputs.indices.shape, depth], dtype);
  const count = sizeOf(inputs.indices.shape);
  const { HEAP32, HEAPF32, HEAPU8 } = backend.wasm;
  const heap = dtype === 'float32' ? HEAPF32 : dtype === 'bool' ? HEAPU8 : HEAP32;
  const to = atBits(backend, out, dtype === 'bool' ? 0 : 2);
  const indicesAt = atBits(backend, inputs.indices, 2);
  heap.fill(offValue, to, to + count * depth);
  for (let i = 0; i < count; i++) {
    const index = HEAP32[indicesAt + i] as number;
    if (index >= 0 && index < depth) heap[to + i * depth + index] = onValue;
  }
  return out;
}
