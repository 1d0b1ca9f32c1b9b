/** @module Obtains wheels: through pip from the package index that it is configured for, or from a folder. Each file is checked by its hash. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { IsogymError, messageOf } from '../records/errors.ts';
import { HOME_HINT } from './checks.ts';
import { type SetupKind, TARGET, WHEELS, type Wheel } from './wheels.ts';

/** Runs a program; its output goes to stderr where a person sits there, and into the error otherwise. @throws `code` */
export async function runProgram(
  command: string,
  args: readonly string[],
  options: {
    readonly code: string;
    readonly hint: string;
    readonly signal: AbortSignal;
    /** Beside the process's own. */
    readonly env?: Readonly<Record<string, string>>;
  },
): Promise<void> {
  const seen = process.stderr.isTTY === true;
  const child = spawn(command, args, {
    stdio: ['ignore', seen ? process.stderr : 'pipe', seen ? process.stderr : 'pipe'],
    env: { ...process.env, ...options.env },
    signal: options.signal,
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (part: Buffer) => {
      output += part;
    });
  // Until it has ended: one that was told to end may still be writing.
  const code = await new Promise<number | string | null>((resolve) => {
    let failure: string | undefined;
    child.on('error', (error) => {
      failure = error.message;
    });
    child.on('close', (status) => resolve(failure ?? status));
  });
  options.signal.throwIfAborted();
  if (code === 0) return;
  const last = output.trim().split('\n').slice(-3).join('\n');
  throw new IsogymError(options.code, `${command} ended with ${code}${last === '' ? '' : `:\n${last}`}`, {
    hint: /No space left on device/.test(output) ? HOME_HINT : options.hint,
  });
}

const DOWNLOAD = [
  ...['-m', 'pip', 'download', '--no-deps', '--only-binary=:all:'],
  ...['--python-version', TARGET.python, '--implementation', 'cp', '--abi', TARGET.abi, '--abi', 'none'],
  ...TARGET.platforms.flatMap((platform) => ['--platform', platform]),
];

/** The command that brings a kind's wheels on a machine that has an index. */
export function elsewhere(kind: SetupKind): string {
  const wheels = WHEELS[kind].map(({ project, version }) => `${project}==${version}`);
  return ['python3', ...DOWNLOAD, '--dest', 'DIR', ...wheels].join(' ');
}

/** Downloads one wheel into an empty folder of its own. @returns its path. @throws DOWNLOAD_FAILED, BAD_WHEEL */
export async function download(kind: SetupKind, wheel: Wheel, folder: string, signal: AbortSignal): Promise<string> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const requirements = join(folder, 'requirements.txt');
  writeFileSync(requirements, `${wheel.project}==${wheel.version} --hash=sha256:${wheel.sha256}\n`);
  const quiet = ['--no-cache-dir', '--disable-pip-version-check'];
  await runProgram('python3', [...DOWNLOAD, '--require-hashes', ...quiet, '--dest', folder, '-r', requirements], {
    code: 'DOWNLOAD_FAILED',
    hint: `Is the package index reachable? Where it is not, fetch the wheels elsewhere and give their folder: --wheels DIR\n      ${elsewhere(kind)}`,
    signal,
    // What pip leaves where it is ended goes with the folder, and the space that it takes is that of the setup.
    env: { TMPDIR: folder },
  });
  return verified(kind, wheel, folder);
}

/** The file of `wheel`, one of the kind's, in a folder of wheels. @throws NO_WHEEL, BAD_WHEEL */
export async function verified(kind: SetupKind, wheel: Wheel, folder: string): Promise<string> {
  const prefix = `${wheel.project.replaceAll('-', '_')}-${wheel.version}-`;
  let files: readonly string[];
  try {
    files = readdirSync(folder);
  } catch (cause) {
    throw new IsogymError('NO_WHEEL', `expected a folder of wheels, found ${messageOf(cause)}`, {
      cause,
      exitCode: 2,
      hint: elsewhere(kind),
    });
  }
  const name = files.find((file) => file.startsWith(prefix) && file.endsWith('.whl'));
  if (name === undefined) {
    throw new IsogymError('NO_WHEEL', `${folder}: expected a file ${prefix}….whl, found none`, {
      exitCode: 2,
      hint: elsewhere(kind),
    });
  }
  const file = join(folder, name);
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  const found = hash.digest('hex');
  if (found !== wheel.sha256) {
    throw new IsogymError('BAD_WHEEL', `${file}: expected sha256 ${wheel.sha256}, found ${found}`, {
      hint: 'It is another file than the one that isogym was tried with: nothing of it was unpacked.',
    });
  }
  return file;
}
