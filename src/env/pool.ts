/** @module Rollouts in a pool of worker threads. The same requests give the same episodes, whatever the number of workers. */
import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { Piscina } from 'piscina';
import type { TokenPolicy } from '../policy/token-policy.ts';
import { inputError, messageOf } from '../records/errors.ts';
import type { Episode } from '../records/trajectory.ts';
import { Inside } from './inside.ts';
import { importEnvironment } from './load.ts';
import {
  crossing,
  type InsideSpec,
  type PolicySpec,
  type RolloutEngine,
  type RolloutRequest,
  type RolloutSetup,
} from './rollouts.ts';
import { Rounds } from './rounds.ts';
import { bundle, resolveModule } from './sandbox/bundle.ts';
import { failedEpisode } from './transcript.ts';
import type { FromWorker, ToWorker, WorkerSetup, WorkerTask } from './worker.ts';

export class RolloutPool implements RolloutEngine {
  readonly #threads: Piscina;
  readonly #inside: Inside;
  readonly #workers: number;
  /** The run before. Runs follow each other, so that a token policy is never asked by two at once. */
  #last: Promise<unknown> = Promise.resolve();

  private constructor(threads: Piscina, inside: Inside, workers: number) {
    this.#threads = threads;
    this.#inside = inside;
    this.#workers = workers;
  }

  /** Starts the workers and loads the environment in each. @throws what loading it throws */
  static async start(o: RolloutSetup & { readonly workers: number }): Promise<RolloutPool> {
    const { workers, ...setup } = o;
    if (!(Number.isInteger(workers) && workers > 0)) {
      throw inputError('WORKERS', `workers: expected a positive integer, found ${workers}`);
    }
    const environment = await importEnvironment(setup.environment);
    const inside = new Inside(environment, setup);
    const script = await bundle(environment.world);
    const threads = new Piscina({
      filename: resolveModule(new URL('./worker.ts', import.meta.url)).href,
      minThreads: workers,
      maxThreads: workers,
      workerData: { setup, script } satisfies WorkerSetup,
    });
    // A worker that dies between two tasks is replaced; nothing of it was lost.
    threads.on('error', () => {});
    const pool = new RolloutPool(threads, inside, workers);
    try {
      await Promise.all(Array.from({ length: workers }, () => pool.#send({ kind: 'load' })));
    } catch (error) {
      await threads.destroy();
      throw error;
    }
    return pool;
  }

  run(requests: readonly RolloutRequest[], policy: PolicySpec, signal?: AbortSignal): Promise<readonly Episode[]> {
    const run = this.#last.then(() => this.#run(requests.map(crossing), policy, signal));
    this.#last = run.catch(() => {});
    return run;
  }

  /** Waits for the runs that have begun. */
  async close(): Promise<void> {
    await this.#last;
    await this.#threads.destroy();
  }

  async #run(
    requests: readonly RolloutRequest[],
    policy: PolicySpec,
    signal: AbortSignal | undefined,
  ): Promise<readonly Episode[]> {
    const stop = new Int32Array(new SharedArrayBuffer(4));
    const cancel = () => Atomics.store(stop, 0, 1);
    if (signal?.aborted) cancel();
    signal?.addEventListener('abort', cancel);
    try {
      if (policy.kind === 'tokens') return await this.#converse(requests, policy.policy, stop);
      // Made here too, so that what does not suit the environment is the caller's error and not each worker's.
      const { name } = this.#inside.policy(policy);
      // 5 to 10 ms of work in each, a few for each worker, so that none waits long for the last.
      const size = Math.min(64, Math.max(16, Math.ceil(requests.length / (4 * this.#workers))));
      const chunks = chunked(requests, size).map((chunk) => this.#act(chunk, policy, name, stop));
      return (await Promise.all(chunks)).flat();
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  }

  /**
   * Where a worker dies, one of its chunk's episodes did it: each is run again alone, so that the others come to what they
   * would have come to, and the one is a failure of its own.
   */
  async #act(
    requests: readonly RolloutRequest[],
    policy: InsideSpec,
    name: string,
    stop: Int32Array,
  ): Promise<readonly Episode[]> {
    try {
      return await this.#send({ kind: 'act', requests, policy, stop });
    } catch (error) {
      const [only, ...more] = requests;
      if (only === undefined) return [];
      if (more.length === 0) return [failedEpisode(only, name, 'sandbox-failure', messageOf(error))];
      const alone = requests.map((request) => this.#act([request], policy, name, stop));
      return (await Promise.all(alone)).flat();
    }
  }

  /** One task a worker: its share of the episodes live in it at once, and the tokens are made here, in rounds. */
  async #converse(
    requests: readonly RolloutRequest[],
    policy: TokenPolicy,
    stop: Int32Array,
  ): Promise<readonly Episode[]> {
    const rounds = new Rounds(
      policy,
      requests.map((request) => request.id),
    );
    const { name, version } = policy;
    const episodes = new Map<string, Episode>();
    const ended = (episode: Episode) => {
      episodes.set(episode.id, episode);
      rounds.end(episode.id);
    };
    const shares = chunked(requests, Math.max(1, Math.ceil(requests.length / this.#workers)));
    await Promise.all(
      shares.map(async (share) => {
        const { port1: ours, port2: port } = new MessageChannel();
        const serve = server(ours, rounds, ended);
        let death = 'its worker ended without it';
        try {
          await this.#send({ kind: 'converse', requests: share, name, version, port, stop }, [port]);
        } catch (error) {
          death = messageOf(error);
        }
        // The task's end and its last words come by two ways: what was said before the end is in the port by now.
        for (let left = receiveMessageOnPort(ours); left !== undefined; left = receiveMessageOnPort(ours)) {
          serve(left.message as FromWorker);
        }
        ours.close();
        for (const request of share) {
          if (!episodes.has(request.id)) ended(failedEpisode(request, name, 'sandbox-failure', death));
        }
      }),
    );
    return requests.map((request) => episodes.get(request.id) as Episode);
  }

  #send(task: WorkerTask, transferList: MessagePort[] = []): Promise<readonly Episode[]> {
    return this.#threads.run(task, { transferList }) as Promise<readonly Episode[]>;
  }
}

/** Answers what a worker asks; the replies of one round go back in one message. */
function server(ours: MessagePort, rounds: Rounds, ended: (episode: Episode) => void): (messages: FromWorker) => void {
  let outbox: ToWorker[number][] = [];
  const flush = () => {
    ours.postMessage(outbox satisfies ToWorker);
    outbox = [];
  };
  const post = (message: ToWorker[number]) => {
    if (outbox.push(message) === 1) queueMicrotask(flush);
  };
  const serve = (messages: FromWorker) => {
    for (const message of messages) {
      if ('ended' in message) {
        ended(message.ended);
        continue;
      }
      const { episodeId } = message.ask;
      rounds.ask(message.ask).then(
        (reply) => post({ episodeId, reply }),
        (error: unknown) => post({ episodeId, error: messageOf(error) }),
      );
    }
  };
  ours.on('message', serve);
  return serve;
}

function chunked<T>(items: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size));
}
