/** @module WebGPU in Node: Dawn from the optional package `webgpu`, tfjs's kernels from the optional package `@tensorflow/tfjs-backend-webgpu`. */
import { createRequire } from 'node:module';
import * as tf from '@tensorflow/tfjs';
import { Unavailable } from './backend.ts';

const require = createRequire(import.meta.url);
const PACKAGES = ['webgpu', '@tensorflow/tfjs-backend-webgpu'] as const;

interface Dawn {
  readonly globals: Record<string, unknown>;
  create(options: readonly string[]): { requestAdapter(): Promise<object | null> };
}

let loaded: Promise<void> | undefined;

/**
 * Sets `webgpu` as the backend and says its device.
 * @throws Unavailable
 */
export async function loadWebgpu(): Promise<string> {
  const missing = PACKAGES.filter((name) => !installed(name));
  if (missing.length > 0) {
    throw new Unavailable(
      `${missing.join(' and ')} not installed`,
      'not installed',
      `npm install ${missing.join(' ')}`,
    );
  }
  loaded ??= load();
  await loaded;
  await tf.setBackend('webgpu');
  return 'GPU through WebGPU (Dawn)';
}

async function load(): Promise<void> {
  const [dawn, kernels] = PACKAGES;
  const { globals, create } = (await import(dawn)) as Dawn;
  const gpu = create([]);
  // tfjs would print a stack trace where there is none.
  if ((await gpu.requestAdapter()) === null) throw new Unavailable('no WebGPU adapter was found', 'no adapter');
  Object.assign(globalThis, globals);
  Object.defineProperty(globalThis.navigator, 'gpu', { value: gpu, configurable: true });
  await import(kernels);
}

function installed(name: string): boolean {
  try {
    require.resolve(name);
    return true;
  } catch {
    return false;
  }
}
