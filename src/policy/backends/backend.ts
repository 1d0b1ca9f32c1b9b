/** @module What a tensor backend is to the rest of the house: a name, a device, the reasons why better ones were passed over, and tfjs itself. */
import type * as Tf from '@tensorflow/tfjs';

/** From the fastest to the slowest: the order in which `auto` tries them. */
export const BACKENDS = ['cuda', 'native', 'webgpu', 'wasm', 'cpu'] as const;
export type BackendName = (typeof BACKENDS)[number];

export interface PassedOver {
  readonly backend: BackendName;
  /** One line. */
  readonly reason: string;
  /** The same in a word or two, e.g. `not set up`. */
  readonly brief: string;
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

/** One line for people: the device, and in a word or two why each better backend was passed over; `isogym doctor` says it at length. */
export function describeBackend({ name, device, passedOver }: Pick<Backend, 'name' | 'device' | 'passedOver'>): string {
  const alike = new Map<string, BackendName[]>();
  for (const { backend, brief } of passedOver) alike.set(brief, [...(alike.get(brief) ?? []), backend]);
  const reasons = [...alike].map(([brief, backends]) => `${backends.join(', ')}: ${brief}`);
  return `backend ${name}: ${device}${reasons.length > 0 ? ` (passed over: ${reasons.join('; ')})` : ''}`;
}

/** Why a backend does not work here; never leaves this folder. */
export class Unavailable extends Error {
  /** What a person can do about it. */
  readonly hint: string | undefined;
  /** The reason in a word or two. */
  readonly brief: string;
  constructor(reason: string, brief: string, hint?: string) {
    super(reason);
    this.brief = brief;
    this.hint = hint;
  }
}
