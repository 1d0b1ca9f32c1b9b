/** @module Obtains wheels: through pip from the package index that it is configured for, or from a folder. Each file is checked by its hash. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { IsogymError, messageOf } from '../records/errors.ts';
import { TARGET, type Wheel } from './wheels.ts';

/** Runs a program; its output goes to stderr where a person sits there, and into the error otherwise. @throws `code` */
export async function runProgram(
  command: string,
  args: readonly string[],
  options: { readonly code: string; readonly hint: string; readonly signal: AbortSignal },
): Promise<void> {
  const seen = process.stderr.isTTY === true;
  const child = spawn(command, args, {
    stdio: ['ignore', seen ? process.stderr : 'pipe', seen ? process.stderr : 'pipe'],
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
    hint: options.hint,
  });
}

/** Downloads one wheel into an empty folder of its own. @returns its path. @throws DOWNLOAD_FAILED, BAD_WHEEL */
export async function download(wheel: Wheel, folder: string, signal: AbortSignal): Promise<string> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const requirements = join(folder, 'requirements.txt');
  writeFileSync(requirements, `${wheel.project}==${wheel.version} --hash=sha256:${wheel.sha256}\n`);
  const target = [
    ...['--python-version', TARGET.python, '--implementation', 'cp', '--abi', TARGET.abi, '--abi', 'none'],
    ...TARGET.platforms.flatMap((platform) => ['--platform', platform]),
  ];
  await runProgram(
    'python3',
    [
      ...['-m', 'pip', 'download', '--no-deps', '--only-binary=:all:', '--require-hashes', '--no-cache-dir'],
      ...['--disable-pip-version-check', '--dest', folder, ...target, '-r', requirements],
    ],
    {
      code: 'DOWNLOAD_FAILED',
      hint: `Is the package index reachable? Where it is not, fetch the wheels elsewhere (docs/backends.md lists them) and give their folder: --wheels DIR`,
      signal,
    },
  );
  return verified(wheel, folder);
}

/** The file of `wheel` in a folder of wheels. @throws NO_WHEEL, BAD_WHEEL */
export async function verified(wheel: Wheel, folder: string): Promise<string> {
  const prefix = `${wheel.project.replaceAll('-', '_')}-${wheel.version}-`;
  let files: readonly string[];
  try {
    files = readdirSync(folder);
  } catch (cause) {
    throw new IsogymError('NO_WHEEL', `expected a folder of wheels, found ${messageOf(cause)}`, {
      cause,
      exitCode: 2,
      hint: 'docs/backends.md lists the wheels, and how to fetch them elsewhere.',
    });
  }
  const name = files.find((file) => file.startsWith(prefix) && file.endsWith('.whl'));
  if (name === undefined) {
    throw new IsogymError('NO_WHEEL', `${folder}: expected a file ${prefix}….whl, found none`, { exitCode: 2 });
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
