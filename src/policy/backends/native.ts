/** @module TensorFlow's own C library through tfjs-node: loaded only where its compiled addon is there. */
import { existsSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import * as tf from '@tensorflow/tfjs';
import { Unavailable } from './backend.ts';

const require = createRequire(import.meta.url);
const PACKAGES = ['@tensorflow/tfjs-node-gpu', '@tensorflow/tfjs-node'] as const;

type Binding = { readonly packageName: string; readonly gpu: boolean };
let loaded: Promise<Binding> | undefined;

/**
 * Loads the first of the two packages whose addon file exists; once per process, as a second libtensorflow cannot be loaded beside the first.
 * @throws Unavailable
 */
export function loadBinding(): Promise<Binding> {
  loaded ??= load();
  return loaded;
}

/** Hides every GPU from an addon that is not loaded yet. */
export function hideGpu(): void {
  if (loaded === undefined) process.env.CUDA_VISIBLE_DEVICES = '-1';
}

async function load(): Promise<Binding> {
  const reasons: string[] = [];
  for (const name of PACKAGES) {
    const folder = packageFolder(name);
    if (folder === undefined) {
      reasons.push(`${name} is not installed`);
      continue;
    }
    if (!hasAddon(folder)) {
      reasons.push(`${name} is installed without its compiled addon (lib/napi-v*/tfjs_binding.node)`);
      continue;
    }
    prepare();
    // The addon's JavaScript sets its platform and its backend as it loads.
    const warn = console.warn;
    console.warn = (...args: unknown[]) => {
      if (!/Platform node has already been set|was already registered|is already registered/.test(String(args[0])))
        warn(...args);
    };
    try {
      await import(name);
    } catch (error) {
      throw new Unavailable(`${name} does not load: ${firstLine(error)}`);
    } finally {
      console.warn = warn;
    }
    const backend = tf.findBackend('tensorflow') as unknown as { isUsingGpuDevice?: boolean } | null;
    return { packageName: name, gpu: backend?.isUsingGpuDevice === true };
  }
  throw new Unavailable(
    reasons.join('; '),
    'the addon is not built at install time; docs/backends.md describes how a GPU is set up',
  );
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

/** Before the addon loads: TensorFlow reads its environment once, and tfjs-node calls two functions that Node 24 no longer has. */
function prepare(): void {
  process.env.TF_CPP_MIN_LOG_LEVEL ??= '2';
  // With oneDNN a small matMul costs 190 µs instead of 24; it concerns only what runs on the CPU.
  process.env.TF_ENABLE_ONEDNN_OPTS ??= '0';
  const util = require('node:util') as Record<string, unknown>;
  util.isNullOrUndefined ??= (x: unknown) => x === null || x === undefined;
  util.isArray ??= Array.isArray;
}

function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? '';
}
