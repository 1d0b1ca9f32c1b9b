/** @module The workers of a pool: threads that run the worlds themselves, or that own a sandbox host each; what they are sent, and how busy they are. */
import type { MessagePort } from 'node:worker_threads';
import type { Piscina } from 'piscina';
import { IsogymError } from '../../records/errors.ts';
import type { Environment } from '../environment.ts';
import type { HostLimits } from '../sandbox/host/process.ts';
import { errorOf, type HostError } from '../sandbox/host/protocol.ts';
import { Threads } from '../sandbox/threads.ts';
import type { HostSetup, WorkerAnswer, WorkerSetup, WorkerTask } from './work.ts';

/** Bounds of the sandbox hosts, for isolation `process`; each has a default. */
export type HostOptions = Partial<HostLimits & Pick<HostSetup, 'recycleAfter'>>;

/** What a worker that did its task answers. */
export type Served = Exclude<WorkerAnswer, { readonly failed: HostError }>;

export class Workers {
  readonly count: number;
  /** Whether each has a sandbox host. */
  readonly ownHosts: boolean;
  readonly #threads: Threads<WorkerTask, WorkerAnswer>;
  readonly #now: () => number;
  /** Tasks that were sent and not answered, when that number last changed, and what `busyMs` was then. */
  #inHand = 0;
  #counted = 0;
  #busyMs = 0;

  /** @param now a clock [ms], for `busyMs` */
  constructor(
    setup: Pick<WorkerSetup, 'setup' | 'script'>,
    environment: Environment,
    o: { readonly count: number; readonly host: HostOptions; readonly now: () => number },
  ) {
    this.count = o.count;
    this.#now = o.now;
    this.ownHosts = environment.isolation === 'process';
    const workerData: WorkerSetup = {
      ...setup,
      ...(this.ownHosts ? { host: hostSetup(environment, o.host, o.count) } : {}),
    };
    const module = new URL(this.ownHosts ? './host-worker.ts' : './worker.ts', import.meta.url);
    this.#threads = new Threads<WorkerTask, WorkerAnswer>(module, o.count, {
      workerData,
      // One that owns a host must hear of it between two tasks too, and not sleep.
      atomics: this.ownHosts ? 'async' : 'sync',
      // A second chunk lies ready at each host, so that none waits until this thread, which may be unpacking, hears of its last.
      concurrentTasksPerWorker: this.ownHosts ? 2 : 1,
      loadBalancer: leastBusy,
    });
  }

  /** Time that they had a task in hand, all of them together, since the start [ms]; 0 without a clock. */
  get busyMs(): number {
    this.#count(0);
    return this.#busyMs;
  }

  /**
   * @param o.shared whether it may lie ready at a host that is busy; else it waits for an idle worker
   * @throws what the worker says is wrong with the task; what ended its thread; WORKERS_LOST
   */
  async send(
    task: WorkerTask,
    { shared = false, transferList = [] }: { readonly shared?: boolean; readonly transferList?: MessagePort[] } = {},
  ): Promise<Served> {
    this.#count(1);
    try {
      const name = shared && this.ownHosts ? SHARED : ALONE;
      const answer = await this.#threads.run(task, { name, transferList });
      if ('failed' in answer) throw errorOf(answer.failed);
      return answer;
    } catch (error) {
      throw this.#threads.lost === undefined ? error : workersLost(this.#threads.lost);
    } finally {
      this.#count(-1);
    }
  }

  /** One such task to each. */
  all(task: WorkerTask): Promise<unknown> {
    return Promise.all(Array.from({ length: this.count }, () => this.send(task)));
  }

  async end(): Promise<void> {
    // A thread that ends takes its host or its isolates along; ended by hand, nothing is left for the system to clear away. Where
    // a worker never came up there is nothing to end.
    await this.all({ kind: 'close' }).catch(() => undefined);
    await this.#threads.end();
  }

  /** An idle worker comes before a second task at a busy one. */
  #count(change: number): void {
    const now = this.#now();
    this.#busyMs += Math.min(this.#inHand, this.count) * (now - this.#counted);
    this.#counted = now;
    this.#inHand += change;
  }
}

function workersLost(why: Error): IsogymError {
  return new IsogymError(
    'WORKERS_LOST',
    `expected another rollout worker in place of one that died, found that none can be started: ${why.message}`,
    {
      cause: why,
      hint: 'The machine may be out of memory or threads: ask for fewer (workers=…). A run goes on with isogym train --resume RUN.',
    },
  );
}

/** What a worker's function is called for a task that waits for an idle worker, and for one that may lie ready at a busy one. */
const ALONE = 'default';
const SHARED = 'shared';

type Balancer = NonNullable<NonNullable<ConstructorParameters<typeof Piscina>[0]>['loadBalancer']>;

const leastBusy: Balancer = ({ name }, workers) => {
  const idle = workers.find(({ currentUsage }) => currentUsage === 0);
  return idle ?? (name === SHARED ? workers.find(({ currentUsage }) => currentUsage === 1) : undefined) ?? null;
};

/** Defaults: 512 MiB and four heaps of resident memory, 250 ms of grace, 10 s without a sign of progress, 100 000 episodes: a start costs what some ten thousand episodes do. */
function hostSetup(environment: Environment, options: HostOptions, workers: number): HostSetup {
  const {
    residentMiB = 512 + 4 * (environment.memoryMiB + (environment.code?.memoryMiB ?? 0)),
    graceMs = 250,
    outsideMs = 10_000,
    recycleAfter = 100_000,
    frameBytes,
  } = options;
  const closed = new Int32Array(new SharedArrayBuffer(4));
  const limits = { residentMiB, graceMs, outsideMs, ...(frameBytes === undefined ? {} : { frameBytes }) };
  return { limits, recycleAfter, closed, workers };
}
