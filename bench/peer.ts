/** @module What the comparisons with other frameworks share: their Python and a process that prints one JSON object. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');

/** A Python that has these packages: `python`, or one that is made in the folder `install`, by venv and pip. */
export function pythonWith(
  packages: readonly string[],
  { python = 'python3', install }: { readonly python?: string | undefined; readonly install?: string | undefined },
): string {
  if (install === undefined) return python;
  execFileSync('python3', ['-m', 'venv', install], { stdio: 'inherit' });
  const installed = join(install, 'bin', 'python');
  execFileSync(installed, ['-m', 'pip', 'install', '--quiet', ...packages], { stdio: 'inherit' });
  return installed;
}

/** What the command prints, run in the repository's root. */
export function printedBy<T>(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): T {
  const options = { encoding: 'utf8', cwd: ROOT, env: { ...process.env, ...env } } as const;
  return JSON.parse(execFileSync(command, args, { ...options, stdio: ['ignore', 'pipe', 'ignore'] }));
}

/**
 * What a peer prints that computes with OpenMP: once with threads that sleep while they wait and once with threads that spin, as it is
 * the machine and the sizes that say which is quicker. With `only` one of them: threads that spin on a machine that is busy with
 * anything else take seconds for a step.
 */
export function printedByPeer<T>(python: string, args: readonly string[], only?: 'PASSIVE' | 'ACTIVE'): readonly T[] {
  const policies = only === undefined ? (['PASSIVE', 'ACTIVE'] as const) : [only];
  return policies.map((policy) => printedBy<T>(python, args, { OMP_WAIT_POLICY: policy }));
}

/** `--openmp` of the comparisons. */
export function openMp(value: string | undefined): 'PASSIVE' | 'ACTIVE' | undefined {
  if (value === undefined || value === 'PASSIVE' || value === 'ACTIVE') return value;
  throw new Error(`--openmp: expected PASSIVE or ACTIVE, found ${value}`);
}
