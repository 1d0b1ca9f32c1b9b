/** @module The supervisor of one sandbox host: gives it one task at a time, and replaces it where it dies or has served its time. */
import { IsogymError } from '../../../records/errors.ts';
import { type HostLimits, HostProcess } from './process.ts';
import { type Death, errorOf, type FromHost, type HostError, untrusted } from './protocol.ts';

/** What became of a task. The result is untrusted: whoever asked for it reads it with suspicion. */
export type HostAnswer = { readonly result: unknown } | { readonly death: Death };

export interface SupervisorOptions {
  /** URL of the module whose default export starts the service. */
  readonly service: URL;
  /** JSON that the service is started with. */
  readonly setup: unknown;
  readonly limits: HostLimits;
  /** Weight (episodes, say) that a host serves before it is replaced, so that nothing can pile up in one for ever. */
  readonly recycleAfter: number;
}

export interface HostTaskOptions {
  readonly weight: number;
  /** Goes to the service beside the body. */
  readonly bytes?: Uint8Array;
  /** What the host says while it works: untrusted. A thrown error kills the host as `untrusted`. */
  readonly heard?: (body: unknown) => void;
}

/** Hosts in a row that died before they were ready, after which none is started again. */
const FALSE_STARTS = 3;

interface OpenTask {
  readonly host: HostProcess;
  readonly number: number;
  readonly heard: ((body: unknown) => void) | undefined;
  readonly resolve: (answer: HostAnswer) => void;
  readonly reject: (error: unknown) => void;
}

export class HostSupervisor {
  readonly #o: SupervisorOptions;
  #current: HostProcess | undefined;
  /** Started ahead of time, so that a death costs the next task no start. */
  #spare: HostProcess | undefined;
  #served = 0;
  #tasks = 0;
  #open: OpenTask | undefined;
  #closed = false;

  constructor(o: SupervisorOptions) {
    this.#o = o;
  }

  /** Starts a host and, once it is ready, a spare one. @throws what starting the service throws, HOST_FAILED */
  async start(): Promise<void> {
    await this.#host();
  }

  /**
   * One task; the next one waits for its end, which is the caller's to see to.
   * @throws the service's own errors (IsogymError), HOST_FAILED where no host can be started, FRAME_TOO_LONG
   */
  async run(body: unknown, { weight, bytes, heard }: HostTaskOptions): Promise<HostAnswer> {
    if (this.#open !== undefined) throw new IsogymError('INTERNAL', 'a sandbox host was given two tasks at once');
    const host = await this.#host();
    const number = ++this.#tasks;
    const { promise, resolve, reject } = Promise.withResolvers<HostAnswer>();
    this.#open = { host, number, heard, resolve, reject };
    host.heard = (message) => this.#take(host, message);
    host.watch();
    try {
      host.post({ kind: 'task', task: number, body, ...(bytes === undefined ? {} : { bytes: true }) }, bytes);
      return await promise;
    } finally {
      this.#open = undefined;
      host.rest();
      this.#served += weight;
    }
  }

  /** To the task that runs. */
  say(body: unknown): void {
    if (this.#open !== undefined) this.#current?.post({ kind: 'say', task: this.#open.number, body });
  }

  /** Asks the task that runs to come to an end; it is seen in the midst of synchronous work too. */
  cancel(): void {
    if (this.#open !== undefined) this.#current?.cancel(this.#open.number);
  }

  /** Process ids of the hosts that live: the current one and the spare. */
  get pids(): readonly number[] {
    return [this.#current, this.#spare].flatMap((host) =>
      host?.dead === false && host.pid !== undefined ? [host.pid] : [],
    );
  }

  async close(): Promise<void> {
    this.#closed = true;
    const hosts = [this.#current, this.#spare].filter((host) => host !== undefined);
    this.#current = undefined;
    this.#spare = undefined;
    for (const host of hosts) host.kill('died', 'its owner has closed it');
    await Promise.all(hosts.map((host) => host.death));
  }

  /** The host that the next task goes to: alive, ready, and not past its time. */
  async #host(): Promise<HostProcess> {
    if (this.#current !== undefined && this.#served >= this.#o.recycleAfter) {
      this.#current.kill('died', 'it has served its time');
    }
    for (let falseStarts = 0; this.#current === undefined || this.#current.dead; falseStarts++) {
      this.#current = this.#spare ?? this.#begin();
      this.#spare = undefined;
      this.#served = 0;
      const death = await this.#current.ready.catch((error: HostError) => {
        this.#current?.kill('died', 'its service did not start');
        throw errorOf(error);
      });
      if (death !== undefined && falseStarts + 1 >= FALSE_STARTS) {
        throw new IsogymError('HOST_FAILED', `No sandbox host can be started: ${death.message}.`, {
          hint: 'Run `isogym doctor`: it says whether isolated-vm works here.',
        });
      }
    }
    // Not while the machine is busy starting the first.
    if (!this.#closed) this.#spare ??= this.#begin();
    return this.#current;
  }

  #begin(): HostProcess {
    const host = new HostProcess(this.#o.service, this.#o.setup, this.#o.limits);
    // Once for each host and not for each task: what waits for its death would keep every task's answer until then.
    void host.death.then((death) => {
      if (this.#open?.host === host) this.#open.resolve({ death });
    });
    return host;
  }

  #take(host: HostProcess, message: FromHost): void {
    const open = this.#open;
    if (open === undefined || message.kind === 'ready' || message.task !== open.number) {
      throw untrusted('words about the task that it was given');
    }
    if (message.kind === 'say') open.heard?.(message.body);
    else if (message.kind === 'done') open.resolve({ result: message.body });
    else open.reject(errorOf(message.error));
    // A host that talks after its last word is not believed again.
    if (message.kind !== 'say') host.heard = () => host.kill('untrusted', 'it spoke without having been asked');
  }
}
