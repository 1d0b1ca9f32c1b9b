/** @module UnsortedSegmentSum, which the stock backend lacks: the gradient of every gather. */
import type { TensorInfo } from '@tensorflow/tfjs';
import { at32, sizeOf, type WasmBackend } from './heap.ts';

/** out[s, …] = Σ over the rows i with ids[i] = s of x[i, …], in the order of i; x float32 or int32, ids int32. Ids outside [0, segments) are left out, as TensorFlow does. */
export function unsortedSegmentSum(args: {
  readonly inputs: { readonly x: TensorInfo; readonly segmentIds: TensorInfo };
  readonly backend: WasmBackend;
  readonly attrs: { readonly numSegments: number };
}): TensorInfo {
  const { inputs, backend, attrs } = args;
  const { x, segmentIds } = inputs;
  const segments = attrs.numSegments;
  const rows = sizeOf(segmentIds.shape);
  const inner = x.shape.slice(segmentIds.shape.length);
  const width = sizeOf(inner);
  const out = backend.makeOutput([segments, ...inner], x.dtype);
  const heap = x.dtype === 'float32' ? backend.wasm.HEAPF32 : backend.wasm.HEAP32;
  const ids = backend.wasm.HEAP32;
  const xAt = at32(backend, x);
  const idsAt = at32(backend, segmentIds);
  const outAt = at32(backend, out);
  heap.fill(0, outAt, outAt + segments * width);
  for (let row = 0; row < rows; row++) {
    const segment = ids[idsAt + row] as number;
    if (segment < 0 || segment >= segments) continue;
    const from = xAt + row * width;
    const to = outAt + segment * width;
    for (let i = 0; i < width; i++) heap[to + i] = (heap[to + i] as number) + (heap[from + i] as number);
  }
  return out;
}
