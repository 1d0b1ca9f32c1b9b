/** @module Puts our kernels over the stock ones of the wasm backend. */

import type { TensorInfo } from '@tensorflow/tfjs';
import * as tf from '@tensorflow/tfjs';
import type { OwnKernel } from '../own-kernel.ts';
import { cast, identity } from './alias.ts';
import { concat, gather, oneHot, pack, slice, splitV, unpack } from './blocks.ts';
import {
  cachedAttention,
  rmsNorm,
  rmsNormGrad,
  rotate,
  scoredLogprobs,
  scoredLogprobsGrad,
  selfAttention,
  selfAttentionGrad,
} from './fused.ts';
import { batchMatMul } from './matmul.ts';
import { mean, reducible, sum } from './reduce.ts';
import { unsortedSegmentSum } from './segment-sum.ts';

const KERNELS: Readonly<Record<string, unknown>> = {
  BatchMatMul: batchMatMul,
  Cast: cast,
  Concat: concat,
  GatherV2: gather,
  Identity: identity,
  Mean: mean,
  OneHot: oneHot,
  Pack: pack,
  Slice: slice,
  SplitV: splitV,
  Sum: sum,
  UnsortedSegmentSum: unsortedSegmentSum,
  Unpack: unpack,
};

/** Kernels that tfjs does not know. */
const OWN: Readonly<Record<OwnKernel, unknown>> = {
  CachedAttention: cachedAttention,
  RmsNorm: rmsNorm,
  RmsNormGrad: rmsNormGrad,
  Rotate: rotate,
  ScoredLogprobs: scoredLogprobs,
  ScoredLogprobsGrad: scoredLogprobsGrad,
  SelfAttention: selfAttention,
  SelfAttentionGrad: selfAttentionGrad,
};

/** Where ours does not take the arguments, the stock kernel does. */
const LIMITS: Readonly<Record<string, unknown>> = {
  Mean: reducible,
  Sum: reducible,
};

/** For the backend `wasm` alone; tfjs keeps one registry a thread, so that a worker registers its own. */
export function registerKernels(): void {
  for (const [kernelName, kernel] of Object.entries({ ...KERNELS, ...OWN })) {
    const ours = kernel as tf.KernelFunc;
    const stock = tf.getKernel(kernelName, 'wasm')?.kernelFunc;
    const takes = LIMITS[kernelName] as ((args: unknown) => boolean) | undefined;
    const kernelFunc: tf.KernelFunc =
      stock === undefined
        ? ours
        : (args) => (hasText(args.inputs) || takes?.(args) === false ? stock(args) : ours(args));
    // Replacing without taking the old one out first prints a warning for each kernel.
    if (stock !== undefined) tf.unregisterKernel(kernelName, 'wasm');
    tf.registerKernel({ kernelName, backendName: 'wasm', kernelFunc });
  }
}

/** Strings live outside the heap: they stay with the stock kernels. */
function hasText(inputs: tf.NamedTensorInfoMap | readonly TensorInfo[]): boolean {
  for (const input of Object.values(inputs)) if (input?.dtype === 'string') return true;
  return false;
}
