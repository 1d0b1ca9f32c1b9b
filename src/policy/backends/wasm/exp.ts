/** @module Exp by the module of our own. The stock kernel calls the C library for each element, twice as long where the result underflows, as for every forbidden logit. */
import type { TensorInfo } from '@tensorflow/tfjs';
import { sizeOf, type WasmBackend } from './heap.ts';
import { own, pointer } from './module.ts';

/** Relative error below 2e-7; 0 below −87.33, where the result is no normal float32 any more, and infinite above 88.37. */
export function exp(args: { readonly inputs: { readonly x: TensorInfo }; readonly backend: WasmBackend }): TensorInfo {
  const { inputs, backend } = args;
  const out = backend.makeOutput(inputs.x.shape, 'float32');
  own(backend).module.exp(pointer(backend, inputs.x), pointer(backend, out), sizeOf(out.shape));
  return out;
}
