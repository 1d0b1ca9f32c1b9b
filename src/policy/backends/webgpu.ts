/** @module WebGPU in Node: Dawn from the optional package `webgpu`, tfjs's kernels from the optional package `@tensorflow/tfjs-backend-webgpu`. */
import { createRequire } from 'node:module';
import * as tf from '@tensorflow/tfjs';
import { IsogymError } from '../../records/errors.ts';
import { Unavailable } from './backend.ts';

const require = createRequire(import.meta.url);
const PACKAGES = ['webgpu', '@tensorflow/tfjs-backend-webgpu'] as const;

interface Dawn {
  readonly globals: Record<string, unknown>;
  create(options: readonly string[]): { requestAdapter(): Promise<{ readonly info: AdapterInfo } | null> };
}

interface AdapterInfo {
  readonly description: string;
  /** Whether it computes on the CPU. */
  readonly isFallbackAdapter: boolean;
}

/** The device. */
let loaded: Promise<string> | undefined;

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
  const device = await loaded;
  await tf.setBackend('webgpu');
  watch(tf.backend() as unknown as GpuBackend);
  return device;
}

async function load(): Promise<string> {
  const [dawn, kernels] = PACKAGES;
  const { globals, create } = (await import(dawn)) as Dawn;
  const gpu = create([]);
  // tfjs would print a stack trace where there is none.
  const adapter = await gpu.requestAdapter();
  if (adapter === null) throw new Unavailable('no WebGPU adapter was found', 'no adapter');
  Object.assign(globalThis, globals);
  Object.defineProperty(globalThis.navigator, 'gpu', { value: gpu, configurable: true });
  await import(kernels);
  const { description, isFallbackAdapter } = adapter.info;
  return `${description || 'GPU'}${isFallbackAdapter ? ' (software)' : ''} through WebGPU (Dawn)`;
}

/** As much of tfjs's backend as is asked of it. */
interface GpuBackend {
  readonly device: EventTarget & { readonly lost: Promise<{ readonly message: string }> };
  read(dataId: object): Promise<unknown>;
}

const watched = new WeakSet<GpuBackend>();

/**
 * What the device refuses, such as a kernel with more inputs than it binds, it leaves undone and says so on the side; tfjs reads
 * what was there before. From the first such word on each reading is an error.
 */
function watch(backend: GpuBackend): void {
  if (watched.has(backend)) return;
  watched.add(backend);
  let refused: string | undefined;
  backend.device.addEventListener('uncapturederror', (event) => {
    refused ??= (event as Event & { readonly error: Error }).error.message;
  });
  void backend.device.lost.then(({ message }) => {
    refused ??= `the device was lost: ${message}`;
  });
  const read = backend.read.bind(backend);
  backend.read = async (dataId) => {
    const values = await read(dataId);
    if (refused === undefined) return values;
    throw new IsogymError(
      'BACKEND_FAILED',
      `webgpu did not do all that it was asked, its results are worthless: ${refused}`,
      {
        hint: 'Use another backend: isogym doctor lists those that work here.',
      },
    );
  };
}

function installed(name: string): boolean {
  try {
    require.resolve(name);
    return true;
  } catch {
    return false;
  }
}
