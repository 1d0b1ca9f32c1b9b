/** @module Scoring on a pool of worker threads. */
import { bundle } from '../env/sandbox/bundle.ts';
import { heapLimitHolds } from '../env/sandbox/isolated-vm.ts';
import { Threads } from '../env/sandbox/threads.ts';
import { IsogymError, messageOf } from '../records/errors.ts';
import type { Score } from '../records/trajectory.ts';
import { importVerifier } from './load.ts';
import type { Judge, VerifierEngine } from './runner.ts';
import type { Verifier, VerifierInput } from './verifier.ts';
import type { WorkerSetup } from './worker.ts';
import { unscored, type WrittenInputs, written } from './written.ts';

/** Most inputs of one task: a few ms of work, so that the 0.1 ms which a task costs does not show. */
const BATCH = { plain: 128, code: 16 } as const;

function ownsHost({ code }: Judge): boolean {
  return code !== undefined || !heapLimitHolds();
}

export class VerifierPool implements VerifierEngine {
  readonly #threads: Threads<WrittenInputs | 'close', string>;
  /** Inputs of one task, at most. */
  readonly #most: number;
  readonly #reads: Verifier['reads'];

  private constructor(setup: WorkerSetup, workers: number) {
    const { code, reads } = setup.judge;
    this.#most = code === undefined ? BATCH.plain : BATCH.code;
    this.#reads = reads;
    const own = ownsHost(setup.judge);
    const module = new URL(own ? './host-worker.ts' : './worker.ts', import.meta.url);
    this.#threads = new Threads(module, workers, {
      workerData: setup,
      atomics: own ? 'async' : 'sync',
    });
  }

  /**
   * @param o.verifier absolute URL of the module whose default export is the verifier
   * @param o.workers threads, at least 1; one where the verifier has a process of its own: where it runs code of a policy, or the engine does not hold a heap to its limit
   * @throws VERIFIER_BROKEN | MODULE_NOT_FOUND | BUNDLE_FAILED | VERIFIER_POOL_FAILED
   */
  static async start(o: { readonly verifier: string; readonly workers: number }): Promise<VerifierPool> {
    const { source, range, success, timeoutMs, memoryMiB, reset, code, reads } = await importVerifier(o.verifier);
    const judge = { range, success, timeoutMs, memoryMiB, reset, ...(code && { code }), ...(reads && { reads }) };
    const setup = { judge, script: await bundle(source) };
    const pool = new VerifierPool(setup, ownsHost(judge) ? 1 : o.workers);
    try {
      await pool.#run({ stops: [], texts: [] });
    } catch (cause) {
      await pool.close();
      throw new IsogymError('VERIFIER_POOL_FAILED', `No worker can be started for the verifier: ${messageOf(cause)}`, {
        cause,
      });
    }
    return pool;
  }

  /**
   * The order is that of the inputs, whatever the number of workers. Where a worker dies, one of its batch did it: each is scored
   * again alone, so that who is unscored does not depend on who was there with it. The pool replaces the worker.
   */
  async score(inputs: readonly VerifierInput[]): Promise<readonly Score[]> {
    const { stops, texts, scores } = written(inputs, this.#reads);
    // Even parts: a chunk of episodes comes with its canary, which else would be a task of its own.
    const size = Math.ceil(texts.length / Math.ceil(texts.length / this.#most));
    const batches: Promise<readonly Score[]>[] = [];
    for (let from = 0; from < texts.length; from += size) {
      const to = from + size;
      batches.push(this.#batch({ stops: stops.slice(from, to), texts: texts.slice(from, to) }));
    }
    return scores((await Promise.all(batches)).flat());
  }

  async close(): Promise<void> {
    // A thread that ends takes its host or its isolates along; ended by hand, nothing is left for the system to clear away. A pool
    // that never came up has nothing to end.
    await this.#threads.all('close').catch(() => {});
    await this.#threads.end();
  }

  async #batch(batch: WrittenInputs): Promise<readonly Score[]> {
    try {
      return await this.#run(batch);
    } catch (error) {
      const { stops, texts } = batch;
      if (texts.length === 1) return [unscored(`the verifier's worker died: ${messageOf(error)}`)];
      const alone = texts.map((text, i) => this.#batch({ stops: stops.slice(i, i + 1), texts: [text] }));
      return (await Promise.all(alone)).flat();
    }
  }

  async #run(batch: WrittenInputs): Promise<readonly Score[]> {
    return JSON.parse(await this.#threads.run(batch)) as readonly Score[];
  }
}
