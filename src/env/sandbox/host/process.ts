/** @module One sandbox host as its owner sees it: a process that is started, spoken to, measured and killed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { IsogymError, messageOf } from '../../../records/errors.ts';
import type { SandboxFailure } from '../../../records/trajectory.ts';
import { ISOLATE_FLAGS } from '../isolated-vm.ts';
import { resolveModule } from '../resolve-module.ts';
import { encodeBytes, encodeFrame, FrameReader, MAX_FRAME_BYTES } from './frames.ts';
import { type Death, type FromHost, readFromHost, readFromWatchdog, type ToHost, type ToWatchdog } from './protocol.ts';

export interface HostLimits {
  /** Resident memory of one host [MiB], its own 100 or so included. */
  readonly residentMiB: number;
  /** What an operation may take beyond its own timeout before its host is killed [ms]. */
  readonly graceMs: number;
  /** What a host may take between two signs of progress outside any bounded operation [ms]. */
  readonly outsideMs: number;
  /** What it may be told at once [bytes]. Default: what a host reads, 64 MiB. */
  readonly frameBytes?: number;
}

/** A watchdog's word is taken for no more than its frames; what it says is short. */
const MAX_WATCHDOG_FRAME = 1000;
/** Looked at while a task runs. */
const LOOK_MS = 20;
/** Looks without a word of the watchdog, of which there is one in 250 ms, until its host is not trusted any more: 10 s. */
const SILENT_LOOKS = 500;
const STDERR_CHARACTERS = 8000;

export class HostProcess {
  /** Settles once: rejects with the service's own error, or resolves to undefined, or to the death that came before it was ready. */
  readonly ready: Promise<Death | undefined>;
  readonly death: Promise<Death>;
  /** What it says, once it is ready; set by the owner. */
  heard: (message: FromHost) => void = () => {};
  readonly #child: ChildProcess;
  readonly #limits: HostLimits;
  #why: Death | undefined;
  #stderr = '';
  #watch: NodeJS.Timeout | undefined;
  #silent = 0;
  #dead = false;

  /** @param service URL of the module whose default export starts the service; `setup` is what it is started with. */
  constructor(service: URL, setup: unknown, limits: HostLimits) {
    this.#limits = limits;
    const bounds = JSON.stringify({ graceMs: limits.graceMs, outsideMs: limits.outsideMs });
    const main = fileURLToPath(resolveModule(new URL('./main.ts', import.meta.url)));
    this.#child = spawn(process.execPath, [...flags(), main, resolveModule(service).href, bounds], {
      // Nothing of the owner's environment: it may hold secrets, and the time zone and locale are fixed.
      env: { TZ: 'UTC', LC_ALL: 'C' },
      stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
      windowsHide: true,
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = (this.#stderr + text).slice(0, STDERR_CHARACTERS);
    });
    const death = Promise.withResolvers<Death>();
    this.death = death.promise;
    this.#child.on('error', (error) => {
      this.#why ??= { kind: 'died', message: `it cannot be started: ${messageOf(error)}` };
      death.resolve(this.#why);
    });
    // `close` comes after `exit` and after the pipes have been read to their ends.
    this.#child.on('close', (code, signal) => {
      this.#dead = true;
      this.rest();
      death.resolve(this.#why ?? describe(code, signal, this.#stderr));
    });
    const ready = Promise.withResolvers<Death | undefined>();
    this.ready = ready.promise;
    this.ready.catch(() => {});
    void this.death.then(ready.resolve);
    let bytes: Uint8Array | undefined;
    this.#listen(3, new FrameReader(), (message) => {
      if (message instanceof Uint8Array && bytes === undefined) {
        bytes = message;
        return;
      }
      const read = readFromHost(message, bytes);
      bytes = undefined;
      if (read.kind === 'ready') ready.resolve(undefined);
      else if (read.kind === 'failed' && read.task === 0) ready.reject(read.error);
      else this.heard(read);
    });
    this.#listen(4, new FrameReader(MAX_WATCHDOG_FRAME), (message) => {
      this.#silent = 0;
      const read = readFromWatchdog(message);
      if (read !== 'alive') {
        this.kill('hang', `an operation ran past its ${read.overdueMs} ms and nothing inside could end it`);
      }
    });
    this.post({ kind: 'start', setup });
  }

  get dead(): boolean {
    return this.#dead || this.#why !== undefined;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** @throws FRAME_TOO_LONG, and nothing has been sent */
  post(message: ToHost, bytes?: Uint8Array): void {
    const channel = this.#channel(3);
    const frames = [...(bytes === undefined ? [] : [encodeBytes(bytes)]), encodeFrame(message)];
    for (const { length } of frames) checkLength(length, this.#limits.frameBytes ?? MAX_FRAME_BYTES);
    for (const frame of frames) channel.write(frame);
  }

  cancel(task: number): void {
    this.#channel(4).write(encodeFrame({ cancel: task } satisfies ToWatchdog));
  }

  /** Measures it until `rest`. */
  watch(): void {
    this.#silent = 0;
    this.#watch ??= setInterval(() => this.#look(), LOOK_MS);
  }

  rest(): void {
    clearInterval(this.#watch);
    this.#watch = undefined;
  }

  kill(kind: SandboxFailure, message: string): void {
    this.#why ??= { kind, message };
    this.#child.kill('SIGKILL');
  }

  #look(): void {
    const { residentMiB } = this.#limits;
    if (this.#child.pid !== undefined && (residentMiBOf(this.#child.pid) ?? 0) > residentMiB) {
      this.kill('out-of-memory', `its process held more than ${residentMiB} MiB`);
    }
    if (++this.#silent > SILENT_LOOKS) this.kill('hang', 'its watchdog fell silent');
  }

  #listen(fd: 3 | 4, reader: FrameReader, each: (message: unknown) => void): void {
    const channel = this.#channel(fd);
    channel.on('data', (chunk: Buffer) => {
      if (this.#why !== undefined) return;
      try {
        for (const message of reader.push(chunk)) each(message);
      } catch (error) {
        this.kill('untrusted', messageOf(error));
      }
    });
    // A host that dies breaks its pipes; its end is told by `close` alone.
    channel.on('error', () => {});
  }

  #channel(fd: 3 | 4): Duplex {
    return this.#child.stdio[fd] as Duplex;
  }
}

function checkLength(length: number, most: number): void {
  if (length <= most) return;
  throw new IsogymError(
    'FRAME_TOO_LONG',
    `expected at most ${most} bytes for a sandbox host at once, found ${length}: what is begun together, with all that it goes on from`,
    {
      hint: 'Lower the limits of the environment, so that an episode is shorter; where many are begun together, batch.groups or group.size, or raise workers.',
    },
  );
}

/**
 * On Node 24 the profile-guided builtins make fresh contexts three times slower.
 * Node's permission model is a belt, not a boundary: no writing of files and no further process, where this Node has it.
 */
function flags(): readonly string[] {
  const [major = 0] = process.versions.node.split('.').map(Number);
  const permission = process.allowedNodeEnvironmentFlags.has('--permission')
    ? ['--permission', '--allow-fs-read=*', '--allow-addons', '--allow-worker']
    : [];
  return [
    ...ISOLATE_FLAGS,
    '--no-warnings',
    ...(major >= 24 ? ['--no-profile-guided-optimization'] : []),
    ...permission,
  ];
}

function describe(code: number | null, signal: string | null, stderr: string): Death {
  const end = signal === null ? `its process ended with exit code ${code}` : `its process ended with ${signal}`;
  // V8's own words, of which these stay the same from run to run.
  const fatal = /Fatal JavaScript invalid size error|FATAL ERROR: [^\n]*|CALL_AND_RETRY_LAST/.exec(stderr)?.[0] ?? '';
  const memory = /heap_oom = 1|out of memory|allocation failed|invalid .*(size|length)/i.test(stderr);
  return { kind: memory ? 'out-of-memory' : 'died', message: fatal === '' ? end : `${end}: ${fatal.slice(0, 200)}` };
}

/** Resident memory of a process [MiB]. Undefined where it has ended, and on systems other than Linux, which have no file that says. */
export function residentMiBOf(pid: number): number | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    const kib = /^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kib === undefined ? undefined : Number(kib) / 1024;
  } catch {
    return undefined;
  }
}
