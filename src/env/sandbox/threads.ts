/** @module A pool of threads. One that dies is replaced; where that fails all of them are ended, for a task that waits for a thread would wait for ever. */
import { Piscina } from 'piscina';
import { prepareThreads } from './isolated-vm.ts';
import { resolveModule } from './resolve-module.ts';

type PoolOptions = NonNullable<ConstructorParameters<typeof Piscina>[0]>;
type RunOptions = NonNullable<Parameters<Piscina['run']>[1]>;

export class Threads<T, R> {
  readonly count: number;
  readonly #pool: Piscina<T, R>;
  /** Why one could not be replaced. */
  #lost: Error | undefined;
  #ending = false;

  /** @param module what runs in each of them */
  constructor(
    module: URL,
    count: number,
    options: Pick<PoolOptions, 'workerData' | 'atomics' | 'concurrentTasksPerWorker' | 'loadBalancer'>,
  ) {
    this.count = count;
    prepareThreads();
    const filename = resolveModule(module).href;
    this.#pool = new Piscina({ ...options, filename, minThreads: count, maxThreads: count });
    let why: Error | undefined;
    // Told of a thread that dies between two tasks: of one that was replaced nothing was lost.
    this.#pool.on('error', (error: Error) => {
      why = error;
    });
    // Before it is replaced.
    this.#pool.on('workerDestroy', () => {
      why = undefined;
      queueMicrotask(() => {
        if (this.#ending || this.#lost !== undefined || this.#pool.threads.length === count) return;
        this.#lost = why ?? new Error('it ended as it started');
        void this.#pool.destroy();
      });
    });
  }

  /** Why a thread that died could not be replaced: nothing is run any more. */
  get lost(): Error | undefined {
    return this.#lost;
  }

  /** @throws what the task throws; what ended its thread; `lost` */
  async run(task: T, options?: RunOptions): Promise<R> {
    try {
      if (this.#lost === undefined) return await this.#pool.run(task, options);
    } catch (error) {
      if (this.#lost === undefined) throw error;
    }
    throw this.#lost;
  }

  /** One such task to each, as they become free. */
  all(task: T): Promise<readonly R[]> {
    return Promise.all(Array.from({ length: this.count }, () => this.run(task)));
  }

  async end(): Promise<void> {
    this.#ending = true;
    await this.#pool.destroy();
  }
}
