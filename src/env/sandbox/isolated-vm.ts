/** @module isolated-vm, loaded on first use, so that a missing or unsafe one is an error with a hint and not a failed import. */
import { createRequire } from 'node:module';
import { setFlagsFromString } from 'node:v8';
import type ivm from 'isolated-vm';
import { IsogymError, messageOf } from '../../records/errors.ts';
import { STUCK } from './globals.ts';

/**
 * Refuses versions with the escape GHSA-864f-rcv7-6rh4 (a guest that holds a `Reference`), fixed in 6.2.0 and 7.0.1.
 * @throws ISOLATED_VM_UNSAFE
 */
export function checkVersion(version: string): void {
  const [major = 0, minor = 0, patch = 0] = version.split(/[.-]/, 3).map(Number);
  const safe = major === 6 ? minor >= 2 : major === 7 ? minor > 0 || patch > 0 : major > 7;
  if (!safe) {
    throw new IsogymError(
      'ISOLATED_VM_UNSAFE',
      `Expected isolated-vm 6.2.0 or later (7.0.1 or later of 7), found ${version}: guests can escape from it (GHSA-864f-rcv7-6rh4).`,
      { hint: 'npm install isolated-vm@6.2.0' },
    );
  }
}

/**
 * Whether an isolate's heap limit stops what grows in a tight loop. It does under V8 12 (Node 22). Under V8 13 (Node 24, tried
 * with isolated-vm 6.2.0) `for (;;) all.push(new Array(1000).fill(1))` goes on past limit and timeout alike, with 1.2 GB
 * after 12 s: the interrupt that ends it is not served in such a loop. There only a process that is watched from outside is safe.
 * @param v8 version, e.g. `process.versions.v8`
 */
export function heapLimitHolds(v8: string = process.versions.v8): boolean {
  return Number(v8.split('.', 1)[0]) < 13;
}

/**
 * What a process that runs isolates should begin with. No snapshot: isolated-vm asks for that. No marking in steps: a worker that
 * ends while its heap is being marked finishes the marking after isolated-vm has gone from the thread, and isolated-vm's weak
 * callbacks then abort the whole process (6.2.0, ClassHandle::WeakCallback); it costs pauses, not throughput.
 */
export const ISOLATE_FLAGS = ['--no-node-snapshot', '--no-incremental-marking'] as const;

/**
 * For a process that did not begin so, before its threads begin: the flag holds for all of them. Set while another thread is
 * about to mark, it ends the process (`Check failed: CanBeStarted()`, then SIGTRAP): once in some 80 runs.
 */
export function prepareThreads(): void {
  const [, marking] = ISOLATE_FLAGS;
  if (!process.execArgv.includes(marking)) setFlagsFromString(marking);
}

let loaded: typeof ivm | undefined;

/** @throws ISOLATED_VM_UNSAFE | ISOLATED_VM_MISSING where it is not installed or has no binary for this machine. */
export function isolatedVm(): typeof ivm {
  if (loaded) return loaded;
  const require = createRequire(import.meta.url);
  let version: string;
  try {
    version = String(require('isolated-vm/package.json').version);
    loaded = require('isolated-vm') as typeof ivm;
  } catch (cause) {
    throw new IsogymError('ISOLATED_VM_MISSING', `isolated-vm cannot be loaded: ${messageOf(cause)}`, {
      cause,
      hint: `npm install isolated-vm@6.2.0 (Node ${process.version}, ${process.platform}-${process.arch}; it has binaries for Node 22 and 24)`,
    });
  }
  try {
    checkVersion(version);
    checkGlobals();
  } catch (error) {
    loaded = undefined;
    throw error;
  }
  prepareThreads();
  return loaded;
}

/** Refuses an engine that gives isolates what the guard cannot take away. @throws ISOLATED_VM_UNSAFE */
function checkGlobals(): void {
  if (STUCK.length === 0) return;
  throw new IsogymError(
    'ISOLATED_VM_UNSAFE',
    `Expected isolates without globals that cannot be taken away, found ${STUCK.join(', ')}.`,
    { hint: 'Run Node without --expose-gc and other flags that add globals.' },
  );
}
