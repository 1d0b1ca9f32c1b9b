/** @module Loads the stock wasm backend from its installed package and puts our own kernels over it. */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import * as tf from '@tensorflow/tfjs';
import { setWasmPaths } from '@tensorflow/tfjs-backend-wasm';
import { checkAllocations } from './allocation.ts';
import type { WasmBackend } from './heap.ts';
import { registerKernels } from './register.ts';

let loaded: Promise<void> | undefined;

/** Sets `wasm` as the backend of this thread's engine. The kernels are registered once, only for wasm. */
export async function loadWasm(): Promise<void> {
  loaded ??= load();
  await loaded;
  await tf.setBackend('wasm');
}

async function load(): Promise<void> {
  const folder = dirname(createRequire(import.meta.url).resolve('@tensorflow/tfjs-backend-wasm'));
  setWasmPaths(join(folder, '/'));
  // Emscripten hangs handlers of its own on the process, which would turn any exception of ours into its own.
  const before = new Set([...process.listeners('uncaughtException'), ...process.listeners('unhandledRejection')]);
  await tf.setBackend('wasm');
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    for (const listener of process.listeners(event as 'uncaughtException')) {
      if (!before.has(listener)) process.removeListener(event, listener);
    }
  }
  checkAllocations(tf.backend() as unknown as WasmBackend);
  registerKernels();
}
