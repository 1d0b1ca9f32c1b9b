/**
 * @module Episodes of a policy that acts inside a worker, packed into one buffer that is handed over and not copied: numbers
 * and one text. What the owner knows or can work out from the rest is left out: ids, seed, prompt, what a text reads as, which
 * tokens were sampled. So there is little to check, and all that there is comes from an untrusted host.
 * `packer.ts` writes it, `unpack.ts` reads it.
 *
 * Layout: four int32 (logprobs, integers, bytes of text, bytes of a character: 1 or 2), float64 logprobs, int32 integers, text.
 */
import { STOP_RULES, type StopReason } from '../../records/stop-reason.ts';
import type { CallState, SandboxFailure } from '../../records/trajectory.ts';
import type { InsideSpec, RolloutRequest } from './rollouts.ts';

export const STOPS = Object.keys(STOP_RULES) as readonly StopReason[];
export const FAILURES: readonly SandboxFailure[] = ['out-of-memory', 'hang', 'untrusted', 'died'];
export const STATES: readonly CallState[] = ['issued', 'running', 'ok', 'error', 'crashed', 'timeout', 'skipped'];
/** Bytes before the logprobs. */
export const HEADER = 16;
/** Characters of a link of the hash chain. */
export const HASH = 64;
/** Integers of a call's record, at least. */
export const RECORD = 5;
/** In place of a length: there is no such text. */
export const ABSENT = -1;

/** Policies whose actions are what their texts read as, under one version; what a record is played back from may hold others. */
export function packs(spec: InsideSpec, requests: readonly RolloutRequest[]): boolean {
  const acts = spec.kind === 'scripted' || spec.kind === 'uniform' || spec.kind === 'tabular';
  return acts && requests.every((request) => request.fork === undefined);
}
