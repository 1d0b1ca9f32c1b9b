/**
 * @module What a sandbox host runs: a service, named by a URL, one task at a time. It talks over two pipes that its owner
 * holds: messages on one, its watchdog on the other. It is the process in which foreign code may hang or run out of memory.
 */
import { Socket } from 'node:net';
import { argv } from 'node:process';
import { Worker } from 'node:worker_threads';
import { IsogymError, messageOf } from '../../../records/errors.ts';
import { CANCEL, enter, leave, mark, PLACES, watchFrom } from '../progress.ts';
import { resolveModule } from '../resolve-module.ts';
import { encodeBytes, encodeFrame, FrameReader } from './frames.ts';
import type { FromHost, ToHost } from './protocol.ts';
import type { WatchdogSetup } from './watchdog.ts';

/** What a host does. The module at the service's URL exports a `StartService` as default. */
export interface HostService {
  /** Gives JSON or bytes. Rejects where the task is wrong; whatever befalls an episode is part of the result. */
  run(body: unknown, talk: HostTalk): Promise<unknown>;
}
export type StartService = (setup: never) => Promise<HostService>;

/** A task's talk with its owner. */
export interface HostTalk {
  /** What came beside the body. */
  readonly bytes: Uint8Array | undefined;
  say(body: unknown): void;
  heard(listener: (body: unknown) => void): void;
  /** True once the owner has cancelled the task or one after it; read at any time, also in the midst of synchronous work. */
  readonly signal: { readonly aborted: boolean };
}

/** The message channel. */
const CHANNEL = 3;
/** Bound on the start of the service: its modules are read and compiled, on a machine that may be busy with other hosts. */
const START_MS = 60_000;
/** How often the event loop marks that it turns. */
const TURN_MS = 100;

const [, , serviceUrl = '', bounds = '{}'] = argv;
const marks = new Int32Array(new SharedArrayBuffer(PLACES * Int32Array.BYTES_PER_ELEMENT));
watchFrom(marks);
const started = enter(START_MS);
new Worker(resolveModule(new URL('./watchdog.ts', import.meta.url)), {
  workerData: {
    ...(JSON.parse(bounds) as Pick<WatchdogSetup, 'graceMs' | 'outsideMs'>),
    marks,
  } satisfies WatchdogSetup,
});
setInterval(mark, TURN_MS).unref();

const channel = new Socket({ fd: CHANNEL });
const reader = new FrameReader();
const post = (message: FromHost) => channel.write(encodeFrame(message));
const listeners = new Map<number, (body: unknown) => void>();
let service: Promise<HostService> | undefined;
/** Bytes that the next task comes with. */
let beside: Uint8Array | undefined;
/** One task after the other, in the order in which they came. */
let last: Promise<void> | undefined;

const end = () => process.kill(process.pid, 'SIGKILL');
channel.on('end', end);
channel.on('error', end);
channel.on('data', (chunk: Buffer) => {
  for (const message of reader.push(chunk) as (ToHost | Uint8Array)[]) {
    if (message instanceof Uint8Array) beside = message;
    else take(message);
  }
});

function take(message: ToHost): void {
  switch (message.kind) {
    case 'start':
      service = start(message.setup);
      service.then(
        () => post({ kind: 'ready' }),
        (error) => post(failed(0, error)),
      );
      return;
    case 'task':
      last = following(last, message.task, message.body, message.bytes && beside);
      beside = undefined;
      return;
    case 'say':
      listeners.get(message.task)?.(message.body);
  }
}

async function start(setup: unknown): Promise<HostService> {
  const module = (await import(serviceUrl)) as { readonly default: StartService };
  const made = await module.default(setup as never);
  leave(started);
  return made;
}

async function following(before: Promise<void> | undefined, ...task: Parameters<typeof serve>): Promise<void> {
  await before;
  await serve(...task);
}

async function serve(task: number, body: unknown, bytes: Uint8Array | undefined): Promise<void> {
  try {
    const running = await service;
    if (running === undefined) throw new IsogymError('INTERNAL', 'a host was given a task before its start');
    const talk: HostTalk = {
      bytes,
      say: (said) => post({ kind: 'say', task, body: said }),
      heard: (listener) => listeners.set(task, listener),
      signal: {
        get aborted() {
          return Atomics.load(marks, CANCEL) >= task;
        },
      },
    };
    const result = await running.run(body, talk);
    if (result instanceof Uint8Array) channel.write(encodeBytes(result));
    post({ kind: 'done', task, body: result instanceof Uint8Array ? null : result });
  } catch (error) {
    post(failed(task, error));
  } finally {
    listeners.delete(task);
  }
}

function failed(task: number, error: unknown): FromHost {
  const { code = 'INTERNAL', hint, exitCode = 1 } = error instanceof IsogymError ? error : {};
  const message = messageOf(error);
  return { kind: 'failed', task, error: { code, message, exitCode, ...(hint === undefined ? {} : { hint }) } };
}
