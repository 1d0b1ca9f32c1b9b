/** @module The proof of a setup: a product and its gradient in a process of its own, so that a library which crashes takes nothing with it. */
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { IsogymError } from '../records/errors.ts';
import type { Proof } from './proof-process.ts';
import type { SetupKind } from './wheels.ts';

/** Compiled beside this file where this file is compiled. */
const PROOF = fileURLToPath(new URL(`./proof-process${import.meta.url.slice(-3)}`, import.meta.url));

/** @param folder where the addon was built. @throws PROOF_FAILED with what the process said last; the signal's reason */
export async function proveSetup(kind: SetupKind, folder: string, signal: AbortSignal): Promise<Proof> {
  const child = spawn(process.execPath, [PROOF, kind], {
    env: { ...process.env, ISOGYM_ADDON_FOLDER: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
    signal,
  });
  const ended = new Promise<NodeJS.Signals | null | number>((resolve) => {
    // An abort, which the signal tells of; the process then still has to end.
    child.on('error', () => undefined);
    child.on('close', (status, by) => resolve(by ?? status));
  });
  const [stdout, stderr, status] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  signal.throwIfAborted();
  if (status === 0) return JSON.parse(stdout) as Proof;
  const said = stderr.trim().split('\n').at(-1) || 'nothing';
  const by = typeof status === 'string' ? ` (${status})` : '';
  throw new IsogymError('PROOF_FAILED', `the addon in ${folder} does not work: ${said}${by}`, {
    hint: 'isogym doctor shows what works here.',
  });
}
