/**
 * @module One process at a time writes to a run. The lock is a socket that the process listens on: the operating system takes it
 * away with the process, however that ends, so a killed run can be resumed at once. It holds within one machine (and, on Linux,
 * one network namespace); two machines that share a disk are not kept apart.
 */
import { createHash } from 'node:crypto';
import { rmSync, statSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { IsogymError } from '../records/errors.ts';
import { shownPath } from './paths.ts';

export interface RunLock {
  release(): void;
}

/** @param run path of a run folder. @throws RUN_IN_USE where a process, this one included, is writing to it */
export async function lockRun(run: string): Promise<RunLock> {
  const address = addressOf(run);
  let server = await listen(address);
  if (server === null && isFile(address) && !(await answers(address))) {
    // Left by a process that was killed.
    rmSync(address, { force: true });
    server = await listen(address);
  }
  if (server === null) {
    throw new IsogymError(
      'RUN_IN_USE',
      `expected a run that nobody is writing to, found a process at work on ${shownPath(run)}`,
      { hint: 'Wait for it or stop it. `isogym show` and `isogym eval` can be used meanwhile.' },
    );
  }
  const held = server;
  return { release: () => void held.close() };
}

/** The same for every path to one folder. */
function addressOf(run: string): string {
  const { dev, ino } = statSync(run, { bigint: true });
  const name = `isogym-${createHash('sha256').update(`${dev}:${ino}`).digest('hex').slice(0, 32)}`;
  if (process.platform === 'win32') return `\\\\.\\pipe\\${name}`;
  // Linux: in the abstract namespace, which no file stands for.
  return process.platform === 'linux' ? `\0${name}` : join(tmpdir(), `${name}.sock`);
}

function isFile(address: string): boolean {
  return !address.startsWith('\0') && !address.startsWith('\\');
}

function listen(address: string): Promise<Server | null> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(null) : reject(error),
    );
    server.listen(address, () => resolve(server.unref()));
  });
}

function answers(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(address);
    const settle = (answered: boolean) => {
      socket.destroy();
      resolve(answered);
    };
    socket.once('connect', () => settle(true));
    socket.once('error', () => settle(false));
  });
}
