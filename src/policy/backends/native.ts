/** @module TensorFlow's own C library through tfjs-node: loaded only where its compiled addon is there. */
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import * as tf from '@tensorflow/tfjs';
import { IsogymError, messageOf } from '../../records/errors.ts';
import { ADDON_PACKAGE, type Addon, findAddons, packageFolder } from './addon.ts';
import { Unavailable } from './backend.ts';
import type { NodeBackend } from './node-backend.ts';

const require = createRequire(import.meta.url);

export interface Binding {
  /** E.g. `TensorFlow 2.21.0`. */
  readonly library: string;
  readonly gpu: boolean;
}

let loaded: Binding | undefined;
/** What it was loaded from. */
let registered: Addon | undefined;

/**
 * Loads the best addon that is there and registers the backend `tensorflow`. Once per process, with the GPU hidden or not as the
 * first call says: a second libtensorflow cannot be loaded beside the first.
 * @param kind `cuda` takes only an addon that may know a GPU; `native` takes any, one made for the CPU first.
 * @throws Unavailable
 */
export function loadBinding(kind: 'cuda' | 'native'): Binding {
  loaded ??= load(kind);
  return loaded;
}

function load(kind: 'cuda' | 'native'): Binding {
  const found = findAddons();
  const fit = kind === 'cuda' ? found.filter(({ cuda }) => cuda) : found.toSorted((a, b) => rank(a) - rank(b));
  const [addon] = fit;
  if (addon === undefined) throw missing(kind);
  prepare(kind);
  const restore = muteRegistration();
  try {
    register(addon);
    registered = addon;
  } catch (error) {
    throw new Unavailable(
      `the addon does not load: ${messageOf(error).split('\n')[0]}`,
      'does not load',
      `isogym setup ${kind}`,
    );
  } finally {
    restore();
  }
  const backend = tf.findBackend('tensorflow') as NodeBackend;
  return { library: `TensorFlow ${backend.binding.TF_Version}`, gpu: backend.isUsingGpuDevice };
}

function rank({ cuda, setUpBy }: Addon): number {
  return (setUpBy === 'isogym' ? 0 : 2) + (cuda ? 1 : 0);
}

function missing(kind: 'cuda' | 'native'): Unavailable {
  return packageFolder(ADDON_PACKAGE) === undefined
    ? new Unavailable(
        `${ADDON_PACKAGE} is not installed`,
        'not installed',
        `npm install --ignore-scripts ${ADDON_PACKAGE}@4.22.0`,
      )
    : new Unavailable('TensorFlow is not set up', 'not set up', `isogym setup ${kind}`);
}

/**
 * Loads a copy of the same addon in place of the one that is there, so that its handles begin anew. The library beneath stays: it is
 * the same for both. All tensors and sessions of the old one must have been disposed of.
 */
export function loadAgain(): void {
  if (registered === undefined) throw new IsogymError('INTERNAL', 'expected an addon that is loaded, found none');
  // A copy, as the same file would be the same library to the loader.
  const folder = mkdtempSync(join(tmpdir(), 'isogym-addon-'));
  try {
    const file = join(folder, basename(registered.file));
    copyFileSync(registered.file, file);
    const backend = backendOf({ ...registered, file });
    tf.removeBackend('tensorflow');
    tf.registerBackend('tensorflow', () => backend, 3);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * What the package's index does, but for looking for the addon in its own folder only, and for the loaders and the Keras
 * callbacks, which nothing here uses.
 */
function register(addon: Addon): void {
  require(`${addon.packageName}/dist/register_all_kernels`);
  const backend = backendOf(addon);
  tf.registerBackend('tensorflow', () => backend, 3);
  tf.unregisterKernel('GatherV2', 'tensorflow');
  tf.registerKernel({ kernelName: 'GatherV2', backendName: 'tensorflow', kernelFunc: gather as tf.KernelFunc });
}

function backendOf({ packageName, file }: Addon): tf.KernelBackend {
  const { NodeJSKernelBackend } = require(`${packageName}/dist/nodejs_kernel_backend`) as {
    NodeJSKernelBackend: new (binding: unknown, packageName: string) => tf.KernelBackend;
  };
  return new NodeJSKernelBackend(require(file), packageName);
}

/** The package's own reads every index back to check it, which stalls a GPU and cannot be recorded; TensorFlow checks them on the CPU itself. */
function gather({ inputs, attrs, backend }: GatherCall): tf.TensorInfo {
  const { TF_ATTR_INT, TF_ATTR_TYPE, TF_INT32 } = backend.binding;
  const axis = tf.scalar(attrs.axis, 'int32');
  const type = (name: string, value: number) => ({ name, type: TF_ATTR_TYPE, value });
  const out = backend.executeSingleOutput(
    'GatherV2',
    [
      { name: 'batch_dims', type: TF_ATTR_INT, value: attrs.batchDims },
      type('Tparams', backend.getDTypeInteger(inputs.x.dtype)),
      type('Tindices', TF_INT32),
      type('Taxis', TF_INT32),
    ],
    [inputs.x, inputs.indices, axis],
  );
  axis.dispose();
  return out;
}

interface GatherCall {
  readonly inputs: { readonly x: tf.TensorInfo; readonly indices: tf.TensorInfo };
  readonly attrs: { readonly axis: number; readonly batchDims: number };
  readonly backend: NodeBackend;
}

/** Before the addon loads: TensorFlow reads its environment once, and tfjs-node calls two functions that Node 22 warns of and Node 24 no longer has. */
function prepare(kind: 'cuda' | 'native'): void {
  if (kind === 'native') process.env.CUDA_VISIBLE_DEVICES = '-1';
  process.env.TF_CPP_MIN_LOG_LEVEL ??= '2';
  if (kind === 'cuda') process.env.TF_FORCE_GPU_ALLOW_GROWTH ??= 'true';
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
