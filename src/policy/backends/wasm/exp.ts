/**
 * @module Exp from two sigmoids: eˣ = σ(x) / σ(−x). The stock Exp calls the C library for each element, twice as long where the
 * result underflows, as for every forbidden logit; the stock Sigmoid is vectorised.
 */

import type { TensorInfo } from '@tensorflow/tfjs';
import * as tf from '@tensorflow/tfjs';
import type { WasmBackend } from './heap.ts';

/** Relative error below 1e-6; 0 below −87.3 and infinite above 87.3, where the smaller sigmoid is no normal float32 any more. */
export function exp(args: { readonly inputs: { readonly x: TensorInfo }; readonly backend: WasmBackend }): TensorInfo {
  const { inputs, backend } = args;
  const run = (kernel: string, operands: Record<string, TensorInfo>): TensorInfo =>
    tf.getKernel(kernel, 'wasm').kernelFunc({ inputs: operands, backend, attrs: {} }) as TensorInfo;
  const negated = run('Neg', inputs);
  const upper = run('Sigmoid', inputs);
  const lower = run('Sigmoid', { x: negated });
  const out = run('RealDiv', { a: upper, b: lower });
  for (const { dataId } of [negated, upper, lower]) backend.disposeData(dataId);
  return out;
}
