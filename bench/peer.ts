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

/**
 * What the command prints, run in the repository's root. OpenMP's threads sleep while they wait: those of PyTorch otherwise spin, and
 * on a machine that is busy with anything else a step of theirs takes seconds.
 */
export function printedBy<T>(command: string, args: readonly string[]): T {
  const env = { ...process.env, OMP_WAIT_POLICY: 'PASSIVE' };
  return JSON.parse(
    execFileSync(command, args, { encoding: 'utf8', cwd: ROOT, env, stdio: ['ignore', 'pipe', 'ignore'] }),
  );
}
