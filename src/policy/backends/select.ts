/** @module Chooses the tensor backend: the first that really works, with a reason for each better one that does not. */
import { cpus } from 'node:os';
import * as tf from '@tensorflow/tfjs';
import { IsogymError, messageOf } from '../../records/errors.ts';
import { BACKENDS, type Backend, type BackendName, type PassedOver, Unavailable } from './backend.ts';
import { nvidiaDriver } from './gpu.ts';
import { loadBinding } from './native.ts';
import { prove } from './proof.ts';
import { loadWasm } from './wasm/load.ts';
import { loadWebgpu } from './webgpu.ts';

export { type Backend, type BackendName, describeBackend, type PassedOver } from './backend.ts';

/** How a backend is brought up: sets it on the engine and says its device. */
const START: Record<BackendName, () => Promise<string>> = {
  cuda: async () => {
    const { library, gpu } = loadBinding('cuda');
    if (!gpu) throw new Unavailable(`${library} finds no GPU`, 'no GPU', driverHint());
    await tf.setBackend('tensorflow');
    return `${nvidiaDriver()?.gpus[0] ?? 'GPU'} through ${library}`;
  },
  native: async () => {
    const { library, gpu } = loadBinding('native');
    if (gpu)
      throw new Unavailable(
        'the addon is loaded with the GPU in this process: it is the backend cuda',
        'loaded as cuda',
      );
    await tf.setBackend('tensorflow');
    return `${cpuModel()} through ${library}`;
  },
  webgpu: loadWebgpu,
  wasm: async () => {
    await loadWasm();
    const simd = await tf.env().getAsync('WASM_HAS_SIMD_SUPPORT');
    return `${cpuModel()}, WebAssembly${simd ? ' SIMD' : ''}, one thread`;
  },
  cpu: async () => {
    // Its first tensor prints a banner that recommends tfjs-node.
    (tf.findBackend('cpu') as unknown as { firstUse: boolean }).firstUse = false;
    await tf.setBackend('cpu');
    return `${cpuModel()}, plain JavaScript, one thread`;
  },
};

/** tfjs has one engine a thread, so that starts happen one after the other. */
let queue: Promise<unknown> = Promise.resolve();

function inTurn<T>(work: () => Promise<T>): Promise<T> {
  const turn = queue.then(work, work);
  queue = turn.catch(() => undefined);
  return turn;
}

async function start(name: BackendName): Promise<string> {
  const device = await START[name]();
  await prove(tf);
  return device;
}

/**
 * Brings up a backend and sets it on this thread's tfjs engine; it counts as working once a product and a gradient have come out right.
 * `auto` takes the first of cuda, native, webgpu, wasm, cpu that works. Idempotent; calls at the same time wait for each other, and the last one's backend stays set.
 * @throws BACKEND_UNAVAILABLE where the backend that was asked for by name does not work: never another one in its place.
 */
export function selectBackend(wanted: 'auto' | BackendName): Promise<Backend> {
  return inTurn(() => select(wanted));
}

async function select(wanted: 'auto' | BackendName): Promise<Backend> {
  const passedOver: PassedOver[] = [];
  let cause: unknown;
  for (const name of wanted === 'auto' ? BACKENDS : [wanted]) {
    try {
      return { name, device: await start(name), passedOver, tf };
    } catch (error) {
      passedOver.push({
        backend: name,
        reason: reasonOf(error),
        brief: error instanceof Unavailable ? error.brief : 'fails',
      });
      cause = error;
    }
  }
  throw unavailable(wanted, passedOver, cause);
}

function unavailable(wanted: 'auto' | BackendName, passedOver: readonly PassedOver[], cause: unknown): IsogymError {
  if (wanted === 'auto') {
    const reasons = passedOver.map(({ backend, reason }) => `${backend}: ${reason}`).join('; ');
    return new IsogymError('BACKEND_UNAVAILABLE', `no backend works here: ${reasons}`, { cause });
  }
  const remedy = cause instanceof Unavailable && cause.hint !== undefined ? [cause.hint] : [];
  return new IsogymError('BACKEND_UNAVAILABLE', `expected backend ${wanted} to work, found: ${firstLine(cause)}`, {
    hint: [...remedy, 'backend=auto takes the best that works here'].join('\n      '),
    cause,
  });
}

export interface ProbedBackend {
  readonly backend: BackendName;
  readonly works: boolean;
  /** Why it does not work; null where it does. */
  readonly reason: string | null;
  /** Null where it does not work. */
  readonly device: string | null;
}

/** Tries every backend in order, best first, and sets again the one that was set before. */
export function probeBackends(): Promise<readonly ProbedBackend[]> {
  return inTurn(async () => {
    const before = tf.getBackend();
    const probed: ProbedBackend[] = [];
    for (const backend of BACKENDS) {
      try {
        probed.push({ backend, works: true, reason: null, device: await start(backend) });
      } catch (error) {
        probed.push({ backend, works: false, reason: reasonOf(error), device: null });
      }
    }
    if (before) await tf.setBackend(before);
    return probed;
  });
}

/** The reason and what to do, in one line. */
function reasonOf(error: unknown): string {
  const reason = firstLine(error);
  return error instanceof Unavailable && error.hint !== undefined ? `${reason} (${error.hint})` : reason;
}

function firstLine(error: unknown): string {
  return messageOf(error).split('\n')[0] ?? '';
}

function driverHint(): string {
  const driver = nvidiaDriver();
  if (driver === undefined) return 'the kernel has no NVIDIA driver';
  return `NVIDIA driver ${driver.version}, ${driver.gpus.length} GPUs; CUDA_VISIBLE_DEVICES may hide them`;
}

function cpuModel(): string {
  return cpus()[0]?.model.trim() || 'CPU';
}
