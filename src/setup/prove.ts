/** @module The proof of a setup: a product and its gradient in a process of its own, so that a library which crashes takes nothing with it. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { IsogymError } from '../records/errors.ts';
import type { Proof } from './proof-process.ts';
import type { SetupKind } from './wheels.ts';

/** Compiled beside this file where this file is compiled. */
const PROOF = fileURLToPath(new URL(`./proof-process${import.meta.url.slice(-3)}`, import.meta.url));

/** @param folder where the addon was built. @throws PROOF_FAILED with what the process said last. */
export function proveSetup(kind: SetupKind, folder: string): Proof {
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, [PROOF, kind], {
    encoding: 'utf8',
    env: { ...process.env, ISOGYM_ADDON_FOLDER: folder },
  });
  if (status === 0) return JSON.parse(stdout) as Proof;
  const said = stderr.trim().split('\n').at(-1) || 'nothing';
  throw new IsogymError(
    'PROOF_FAILED',
    `the addon was built and does not work: ${said}${signal ? ` (${signal})` : ''}`,
    {
      hint: 'isogym doctor shows what works here.',
    },
  );
}
