/** @module What a pool and its workers say to each other: the same words whether a worker runs the worlds itself or owns a sandbox host. */
import type { MessagePort } from 'node:worker_threads';
import { move, transferableSymbol, valueSymbol } from 'piscina';
import type { TokenRequest } from '../../policy/token-policy.ts';
import type { Episode } from '../../records/trajectory.ts';
import type { HostLimits } from '../sandbox/host/process.ts';
import type { Death, HostError } from '../sandbox/host/protocol.ts';
import type { TokenAnswer } from './batcher.ts';
import type { InsideSpec, RolloutRequest, RolloutSetup } from './rollouts.ts';
import type { KnownBounds } from './untrusted.ts';

/** What every worker is started with. */
export interface WorkerSetup {
  readonly setup: RolloutSetup;
  /** The bundled world. */
  readonly script: string;
  /** For workers that own a sandbox host. */
  readonly host?: HostSetup;
}

export interface HostSetup {
  readonly limits: HostLimits;
  /** Episodes that a host serves before it is replaced. */
  readonly recycleAfter: number;
  /** Shared count of the workers that have ended their hosts. */
  readonly closed: Int32Array;
  readonly workers: number;
}

/** `stop` is shared memory: [0] is 1 once the run is cancelled, and the worker sees it in the midst of its work. */
export type WorkerTask =
  | { readonly kind: 'load' }
  | { readonly kind: 'close' }
  | {
      readonly kind: 'act';
      /** How many requests there are. */
      readonly count: number;
      /** JSON: see `writeRequests`. */
      readonly requests: string;
      /** Whether the episodes come back packed. */
      readonly packed: boolean;
      readonly policy: InsideSpec;
      readonly stop: Int32Array;
    }
  | {
      /** Its episodes come through the port. */
      readonly kind: 'converse';
      readonly name: string;
      readonly version: number;
      readonly bounds: KnownBounds;
      readonly port: MessagePort;
      readonly stop: Int32Array;
    };

/** The episodes of `act`, in the order of the requests: packed (see `packed.ts`), or not yet read where they come from a host; those of `converse` have gone through its port, one by one. Or the host died, and all that it had not delivered died with it. */
export type WorkerAnswer =
  | { readonly packed: Uint8Array<ArrayBuffer> }
  | { readonly episodes: unknown }
  | { readonly death: Death }
  /** The task is wrong, or no host can be started. As data: a thread's errors lose their codes on the way. */
  | { readonly failed: HostError };

/** From a worker: that it hears, and then one message a turn of its event loop, with all that its episodes said in it. */
export type FromWorker = readonly (
  | { readonly hears: true }
  | { readonly ask: TokenRequest }
  | { readonly ended: Episode }
)[];
/** To a worker: an episode that there is room for, what one asked for, and that no more will begin. */
export type ToWorker = readonly (
  | { readonly begin: RolloutRequest }
  | { readonly over: true }
  | { readonly episodeId: string; readonly reply: TokenAnswer }
  | { readonly episodeId: string; readonly error: string }
)[];

/** An answer whose buffer is handed over by a thread and not copied. */
export function handedOver(packed: Uint8Array<ArrayBuffer>): WorkerAnswer {
  return move({ [transferableSymbol]: [packed.buffer], [valueSymbol]: { packed } } as never) as unknown as WorkerAnswer;
}
