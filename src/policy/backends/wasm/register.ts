/** @module Puts our kernels over the stock ones of the wasm backend. */
import * as tf from '@tensorflow/tfjs';
import { batchMatMul } from './matmul.ts';
import { unsortedSegmentSum } from './segment-sum.ts';

const KERNELS: Readonly<Record<string, unknown>> = {
  BatchMatMul: batchMatMul,
  UnsortedSegmentSum: unsortedSegmentSum,
};

/** For the backend `wasm` alone; tfjs keeps one registry a thread, so that a worker registers its own. */
export function registerKernels(): void {
  for (const [kernelName, kernelFunc] of Object.entries(KERNELS)) {
    // Replacing without taking the old one out first prints a warning for each kernel.
    if (tf.getKernel(kernelName, 'wasm') !== undefined) tf.unregisterKernel(kernelName, 'wasm');
    tf.registerKernel({ kernelName, backendName: 'wasm', kernelFunc: kernelFunc as tf.KernelFunc });
  }
}
