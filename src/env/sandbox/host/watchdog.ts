/**
 * @module The watchdog thread of a sandbox host. While the host's main thread is held up inside native code, this one still
 * runs: it reads the main thread's marks, tells the supervisor (another process) when an operation is over its bound, and
 * ends the host where its owner is gone. It has its own channel, since the host's messages wait for the main thread.
 */
import { Socket } from 'node:net';
import { workerData } from 'node:worker_threads';
import { CANCEL, COUNT, LIMIT } from '../progress.ts';
import { encodeFrame, FrameReader } from './frames.ts';
import type { FromWatchdog, ToWatchdog } from './protocol.ts';

export interface WatchdogSetup {
  /** The main thread's marks, see `progress.ts`. */
  readonly marks: Int32Array;
  /** What an operation may take beyond its own timeout, which ends it in all but the worst cases. */
  readonly graceMs: number;
  /** What the main thread may take outside any bounded operation without a mark. */
  readonly outsideMs: number;
}

/** Between two looks at the marks: a hang is found so much late at most. */
const LOOK_MS = 10;
const LOOKS_PER_BEAT = 25;
/** The watchdog's channel. */
const CHANNEL = 4;

const { marks, graceMs, outsideMs } = workerData as WatchdogSetup;
const channel = new Socket({ fd: CHANNEL });
const reader = new FrameReader();
const post = (message: FromWatchdog) => channel.write(encodeFrame(message));

// Nothing else ends a process that is held up in native code.
const end = () => process.kill(process.pid, 'SIGKILL');
channel.on('data', (chunk: Buffer) => {
  for (const message of reader.push(chunk) as ToWatchdog[]) Atomics.store(marks, CANCEL, message.cancel);
});
channel.on('end', end);
channel.on('error', end);
channel.on('close', end);

let seen = -1;
let looks = 0;
let waitedMs = 0;
let told = false;
setInterval(() => {
  looks++;
  if (looks % LOOKS_PER_BEAT === 0) post('alive');
  const count = Atomics.load(marks, COUNT);
  // Counted in looks and not by a clock, so that a machine that was asleep makes nobody overdue.
  waitedMs = count === seen ? waitedMs + LOOK_MS : 0;
  if (count !== seen) told = false;
  seen = count;
  const limit = Atomics.load(marks, LIMIT);
  const boundMs = limit > 0 ? limit + graceMs : outsideMs;
  if (waitedMs < boundMs || told) return;
  told = true;
  post({ overdueMs: limit > 0 ? limit : outsideMs });
}, LOOK_MS);
