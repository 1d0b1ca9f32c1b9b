/**
 * @module The supervisor of one sandbox host: gives it tasks, and replaces it where it dies or has served its time. A host does
 * one task after the other, in the order in which it was given them: a further one lies ready, so that it need not wait for it.
 */
import { IsogymError, messageOf } from '../../../records/errors.ts';
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
  /** `undefined`: its host died before it came to it. */
  readonly resolve: (answer: HostAnswer | undefined) => void;
  readonly reject: (error: unknown) => void;
}

export class HostSupervisor {
  readonly #o: SupervisorOptions;
  #current: HostProcess | undefined;
  /** Started ahead of time, so that a death costs the next task no start. */
  #spare: HostProcess | undefined;
  #served = 0;
  #tasks = 0;
  /** In the order of their numbers; the host is at the first. */
  readonly #open: OpenTask[] = [];
  /** Settles once the tasks before have been given to a host. */
  #given: Promise<unknown> = Promise.resolve();
  /** Wakes who waits until no task is open. */
  #drained: (() => void) | undefined;
  #closed = false;

  constructor(o: SupervisorOptions) {
    this.#o = o;
  }

  /** Starts a host and, once it is ready, a spare one. @throws what starting the service throws, HOST_FAILED */
  async start(): Promise<void> {
    await this.#host();
  }

  /**
   * One task. Where the host dies, the task that it was at has died; those behind it go to the next host.
   * @throws the service's own errors (IsogymError), HOST_FAILED where no host can be started, FRAME_TOO_LONG
   */
  async run(body: unknown, o: HostTaskOptions): Promise<HostAnswer> {
    let answer: HostAnswer | undefined;
    while (answer === undefined) {
      const given = this.#given.then(() => this.#give(body, o));
      // Not what was given, which would keep its answer.
      const over = () => {};
      this.#given = given.then(over, over);
      answer = await (await given).answer;
    }
    return answer;
  }

  /**
   * To the task that runs. What is longer than a host reads kills it, and is that task's death.
   * @param o.weight of what it is given to do so
   */
  say(body: unknown, { weight }: Pick<HostTaskOptions, 'weight'>): void {
    const [running] = this.#open;
    if (running === undefined) return;
    this.#served += weight;
    try {
      running.host.post({ kind: 'say', task: running.number, body });
    } catch (error) {
      running.host.kill('died', messageOf(error));
    }
  }

  /** Asks the tasks that are open to come to an end; it is seen in the midst of synchronous work too. */
  cancel(): void {
    const last = this.#open.at(-1);
    last?.host.cancel(last.number);
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

  /** The answer wrapped, since what an `async` function returns is awaited. */
  async #give(
    body: unknown,
    { weight, bytes, heard }: HostTaskOptions,
  ): Promise<{ readonly answer: Promise<HostAnswer | undefined> }> {
    const host = await this.#host();
    const number = ++this.#tasks;
    const { promise, resolve, reject } = Promise.withResolvers<HostAnswer | undefined>();
    host.post({ kind: 'task', task: number, body, ...(bytes === undefined ? {} : { bytes: true }) }, bytes);
    host.watch();
    this.#open.push({ host, number, heard, resolve, reject });
    this.#served += weight;
    return { answer: promise };
  }

  /** The host that the next task goes to: alive, ready, and not past its time. What is open is open at one host alone. */
  async #host(): Promise<HostProcess> {
    const due = this.#served >= this.#o.recycleAfter;
    if (this.#open.length > 0 && (due || this.#current?.dead === true)) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#drained = resolve;
      await promise;
    }
    this.#checkOpen();
    if (due) this.#current?.kill('died', 'it has served its time');
    for (let falseStarts = 0; this.#current === undefined || this.#current.dead; falseStarts++) {
      this.#current = this.#spare ?? this.#begin();
      this.#spare = undefined;
      this.#served = 0;
      const death = await this.#current.ready.catch((error: HostError) => {
        this.#current?.kill('died', 'its service did not start');
        throw errorOf(error);
      });
      // Closed meanwhile: one begun now would have nobody to end it.
      this.#checkOpen();
      if (death !== undefined && falseStarts + 1 >= FALSE_STARTS) {
        throw new IsogymError('HOST_FAILED', `No sandbox host can be started: ${death.message}.`, {
          hint: 'Run `isogym doctor`: it says whether isolated-vm works here.',
        });
      }
    }
    // Not while the machine is busy starting the first.
    this.#spare ??= this.#begin();
    return this.#current;
  }

  #checkOpen(): void {
    if (this.#closed) throw new IsogymError('HOST_FAILED', 'The sandbox host has been closed.');
  }

  #begin(): HostProcess {
    const host = new HostProcess(this.#o.service, this.#o.setup, this.#o.limits);
    // Once for each host and not for each task: what waits for its death would keep every task's answer until then.
    void host.death.then((death) => {
      if (this.#open[0]?.host !== host) return;
      const [first, ...behind] = this.#open.splice(0);
      first?.resolve({ death });
      for (const open of behind) open.resolve(this.#closed ? { death } : undefined);
      this.#drained?.();
    });
    host.heard = (message) => this.#take(host, message);
    return host;
  }

  #take(host: HostProcess, message: FromHost): void {
    const [open] = this.#open;
    // Also one that talks after its last word, or of a task that it has not come to, is not believed.
    if (open === undefined || open.host !== host || message.kind === 'ready' || message.task !== open.number) {
      throw untrusted('words about the task that it was given');
    }
    if (message.kind === 'say') {
      open.heard?.(message.body);
      return;
    }
    this.#open.shift();
    if (message.kind === 'done') open.resolve({ result: message.body });
    else open.reject(errorOf(message.error));
    if (this.#open.length > 0) return;
    host.rest();
    this.#drained?.();
  }
}
