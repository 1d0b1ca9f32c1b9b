/** @module TensorFlow's own C library through tfjs-node: loaded only where its compiled addon is there. */
import { existsSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import * as tf from '@tensorflow/tfjs';
import { messageOf } from '../../records/errors.ts';
import { Unavailable } from './backend.ts';

const require = createRequire(import.meta.url);
const PACKAGES = ['@tensorflow/tfjs-node-gpu', '@tensorflow/tfjs-node'] as const;

interface Binding {
  readonly packageName: string;
  readonly gpu: boolean;
}

let loaded: Promise<Binding> | undefined;

/**
 * Loads the first of the two packages whose addon file exists. Once per process, with the GPU hidden or not as the first call says:
 * a second libtensorflow cannot be loaded beside the first.
 * @throws Unavailable
 */
export function loadBinding({ hideGpu }: { readonly hideGpu: boolean }): Promise<Binding> {
  loaded ??= load(hideGpu);
  return loaded;
}

async function load(hideGpu: boolean): Promise<Binding> {
  const found = PACKAGES.map((name) => ({ name, folder: packageFolder(name) }));
  const [ready] = found.filter(({ folder }) => folder !== undefined && hasAddon(folder));
  if (ready === undefined) {
    const [installed] = found.filter(({ folder }) => folder !== undefined);
    throw new Unavailable(
      installed === undefined
        ? `${PACKAGES[0]} is not installed`
        : `${installed.name} is installed without its compiled addon`,
      'docs/backends.md tells how the addon is built',
    );
  }
  prepare(hideGpu);
  const restore = muteRegistration();
  try {
    await import(ready.name);
  } catch (error) {
    throw new Unavailable(`${ready.name} does not load: ${messageOf(error).split('\n')[0]}`);
  } finally {
    restore();
  }
  const backend = tf.findBackend('tensorflow') as unknown as { readonly isUsingGpuDevice: boolean };
  return { packageName: ready.name, gpu: backend.isUsingGpuDevice };
}

function packageFolder(name: string): string | undefined {
  try {
    return dirname(require.resolve(`${name}/package.json`));
  } catch {
    return undefined;
  }
}

function hasAddon(folder: string): boolean {
  const lib = join(folder, 'lib');
  return existsSync(lib) && readdirSync(lib).some((napi) => existsSync(join(lib, napi, 'tfjs_binding.node')));
}

/** Before the addon loads: TensorFlow reads its environment once, and tfjs-node calls two functions that Node 22 warns of and Node 24 no longer has. */
function prepare(hideGpu: boolean): void {
  if (hideGpu) process.env.CUDA_VISIBLE_DEVICES = '-1';
  process.env.TF_CPP_MIN_LOG_LEVEL ??= '2';
  // With oneDNN a small matMul costs 190 µs instead of 24; it concerns only what runs on the CPU.
  process.env.TF_ENABLE_ONEDNN_OPTS ??= '0';
  const util = require('node:util') as Record<string, unknown>;
  util.isNullOrUndefined = (x: unknown) => x === null || x === undefined;
  util.isArray = Array.isArray;
}

/** The addon's JavaScript registers again what tfjs has registered, and tfjs warns of each; other warnings pass. */
function muteRegistration(): () => void {
  const { warn } = console;
  console.warn = (...args: unknown[]) => {
    if (!/has already been set|already registered/.test(String(args[0]))) warn(...args);
  };
  return () => {
    console.warn = warn;
  };
}
