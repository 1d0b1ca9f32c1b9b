/** @module What a host and its supervisor say to each other. All that a host says is read as if an attacker had written it. */
import { IsogymError } from '../../../records/errors.ts';
import { isDeeper, MAX_LEVELS } from '../../../records/json.ts';
import type { SandboxFailure } from '../../../records/trajectory.ts';

/** The death of a host or a worker, as data. The message holds no path, number or time that differs between two runs. */
export interface Death {
  readonly kind: SandboxFailure;
  readonly message: string;
}

/** To a host, over its message channel. `task` numbers count from 1. With `bytes` the message before this one was bytes, which belong to it. */
export type ToHost =
  | { readonly kind: 'start'; readonly setup: unknown }
  | { readonly kind: 'task'; readonly task: number; readonly body: unknown; readonly bytes?: true }
  | { readonly kind: 'say'; readonly task: number; readonly body: unknown };

/** From a host. The body of `done` may be bytes, which come in a message of their own before it. */
export type FromHost =
  | { readonly kind: 'ready' }
  | { readonly kind: 'say'; readonly task: number; readonly body: unknown }
  | { readonly kind: 'done'; readonly task: number; readonly body: unknown }
  | { readonly kind: 'failed'; readonly task: number; readonly error: HostError };

/** An error of the service, e.g. a policy that does not suit the environment. */
export interface HostError {
  readonly code: string;
  readonly message: string;
  readonly hint?: string;
  readonly exitCode: 1 | 2;
}

/** To a host's watchdog, over a channel of its own, which stays open as long as the owner lives. */
export type ToWatchdog = { readonly cancel: number };
/** From a watchdog: that it lives, or that an operation is over its bound. */
export type FromWatchdog = 'alive' | { readonly overdueMs: number };

const MAX_TEXT = 4000;

/**
 * @param bytes of the message before, where that was bytes
 * @throws UNTRUSTED where it is none of the four messages, or nests so deep that the thread that it goes on to could not read it:
 * such a message is lost on the way, and would be waited for
 */
export function readFromHost(message: unknown, bytes?: Uint8Array): FromHost {
  if (isDeeper(message, MAX_LEVELS)) throw untrusted(`at most ${MAX_LEVELS} levels of objects and arrays`);
  const { kind, task, body, error } = objectOf(message);
  if (bytes !== undefined && kind !== 'done') throw untrusted('what its bytes belong to');
  if (kind === 'ready') return { kind };
  if (!(typeof task === 'number' && Number.isSafeInteger(task))) throw untrusted('a task number');
  if (kind === 'say' || kind === 'done') return { kind, task, body: bytes ?? body };
  if (kind !== 'failed') throw untrusted('ready, say, done or failed');
  return { kind, task, error: readError(error) };
}

/** @throws UNTRUSTED */
export function readFromWatchdog(message: unknown): FromWatchdog {
  if (message === 'alive') return message;
  const { overdueMs } = objectOf(message);
  if (!(typeof overdueMs === 'number' && Number.isSafeInteger(overdueMs))) throw untrusted('alive or overdueMs');
  return { overdueMs };
}

function readError(error: unknown): HostError {
  const { code, message, hint, exitCode } = objectOf(error);
  if (typeof code !== 'string' || typeof message !== 'string') throw untrusted('an error with code and message');
  return {
    code: code.slice(0, 100),
    message: message.slice(0, MAX_TEXT),
    ...(typeof hint === 'string' ? { hint: hint.slice(0, MAX_TEXT) } : {}),
    exitCode: exitCode === 2 ? 2 : 1,
  };
}

/** @throws UNTRUSTED */
export function objectOf(value: unknown): { readonly [key: string]: unknown } {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw untrusted('an object');
  return value as { readonly [key: string]: unknown };
}

export function untrusted(expected: string): IsogymError {
  return new IsogymError('UNTRUSTED', `a sandbox host sent something else than ${expected}`);
}

/** The error that was told. */
export function errorOf({ code, message, hint, exitCode }: HostError): IsogymError {
  return new IsogymError(code, message, { exitCode, ...(hint === undefined ? {} : { hint }) });
}
