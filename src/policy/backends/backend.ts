/** @module What a tensor backend is to the rest of the house: a name, a device, the reasons why better ones were passed over, and tfjs itself. */
import type * as Tf from '@tensorflow/tfjs';

/** From the fastest to the slowest: the order in which `auto` tries them. */
export const BACKENDS = ['cuda', 'native', 'webgpu', 'wasm', 'cpu'] as const;
export type BackendName = (typeof BACKENDS)[number];

export interface PassedOver {
  readonly backend: BackendName;
  /** One line. */
  readonly reason: string;
}

export interface Backend {
  readonly name: BackendName;
  /** What computes, for people, e.g. `wasm SIMD, one thread, Intel Xeon`. */
  readonly device: string;
  /** Each better backend that `auto` tried first; empty where the backend was asked for by name. */
  readonly passedOver: readonly PassedOver[];
  /** tfjs with this backend set: the same instance as `import * as tf from '@tensorflow/tfjs'`. */
  readonly tf: typeof Tf;
}

/** One line for people: the device, and why each better backend was passed over. */
export function describeBackend({ name, device, passedOver }: Backend): string {
  const reasons = passedOver.map(({ backend, reason }) => `${backend}: ${reason}`);
  return [`backend ${name}: ${device}`, ...(reasons.length > 0 ? [`passed over ${reasons.join('; ')}`] : [])].join(
    '; ',
  );
}

/** Why a backend does not work here; never leaves this folder. */
export class Unavailable extends Error {
  /** What a person can do about it. */
  readonly hint: string | undefined;
  constructor(reason: string, hint?: string) {
    super(reason);
    this.hint = hint;
  }
}
