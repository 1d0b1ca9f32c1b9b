/** @module Rollouts in a pool of workers. The same requests give the same episodes, whatever the number of workers and wherever the worlds run. */
import { replyInTokens } from '../../policy/reply.ts';
import { TABULAR } from '../../policy/tabular-policy.ts';
import { IsogymError, inputError, messageOf } from '../../records/errors.ts';
import type { Episode } from '../../records/trajectory.ts';
import { Inside } from '../inside.ts';
import { importEnvironment } from '../load.ts';
import { bundle } from '../sandbox/bundle.ts';
import { untrusted } from '../sandbox/host/protocol.ts';
import { heapLimitHolds } from '../sandbox/isolated-vm.ts';
import { failedEpisode } from '../transcript.ts';
import { Conversation, type SendTalk } from './conversation.ts';
import { EarnedReset, type Execute } from './earned-reset.ts';
import { checkActed } from './issued.ts';
import { packs } from './packed.ts';
import {
  crossing,
  crossingPolicy,
  type Ended,
  type InsideSpec,
  type PolicySpec,
  type RolloutEngine,
  type RolloutRequest,
  type RolloutSetup,
  writeRequests,
} from './rollouts.ts';
import { unpackEpisodes } from './unpack.ts';
import { type KnownBounds, readEpisodes } from './untrusted.ts';
import type { WorkerTask } from './work.ts';
import { type HostOptions, type Served, Workers } from './workers.ts';

export class RolloutPool implements RolloutEngine {
  readonly #workers: Workers;
  readonly #inside: Inside;
  readonly #earned: EarnedReset;
  readonly #notice: (text: string) => void;
  /** The run before. Runs follow each other, so that a token policy is never asked by two at once. */
  #last: Promise<unknown> = Promise.resolve();

  private constructor(workers: Workers, inside: Inside, notice: (text: string) => void) {
    this.#earned = new EarnedReset(inside.environment, notice);
    this.#notice = notice;
    this.#workers = workers;
    this.#inside = inside;
  }

  /** Starts the workers and loads the environment in each. @throws what loading it throws */
  static async start(
    o: RolloutSetup & {
      readonly workers: number;
      readonly host?: HostOptions;
      /** Told what a person should know, e.g. that reset level `state` is not earned. Default: Node's warnings. */
      readonly notice?: (text: string) => void;
      /** A clock [ms], for `busyMs`. */
      readonly now?: () => number;
    },
  ): Promise<RolloutPool> {
    const { workers, host = {}, notice = (text) => process.emitWarning(text), now = () => 0, ...setup } = o;
    if (!(Number.isInteger(workers) && workers > 0)) {
      throw inputError('WORKERS', `workers: expected a positive integer, found ${workers}`);
    }
    const environment = await importEnvironment(setup.environment);
    const inside = new Inside(environment, setup);
    const script = await bundle(environment.world);
    if (environment.code !== undefined && inside.environment.isolation === 'thread') {
      throw inputError(
        'ISOLATION',
        `environment.isolation: expected process, since ${environment.name} runs code that the policy wrote, found thread: such code can hang or end the process that it runs in`,
        'Leave environment.isolation out.',
      );
    }
    const threads = new Workers({ setup, script }, inside.environment, { count: workers, host, now });
    if (!threads.ownHosts && !heapLimitHolds()) {
      notice(
        `isolation thread: V8 ${process.versions.v8} does not hold a heap to its limit, so a world that grows may take all of the machine's memory; leave environment.isolation out, or use Node 22`,
      );
    }
    const pool = new RolloutPool(threads, inside, notice);
    try {
      await threads.all({ kind: 'load' });
      await pool.#earned.register(setup.options, (requests, policy, ended) =>
        pool.#run(requests, policy, undefined, ended),
      );
    } catch (error) {
      await threads.end();
      throw error;
    }
    return pool;
  }

  run(
    requests: readonly RolloutRequest[],
    policy: PolicySpec,
    signal?: AbortSignal,
    ended?: Ended,
  ): Promise<readonly Episode[]> {
    const execute: Execute = (some, by, told) => this.#run(some, by, signal, told);
    const run = this.#last.then(() =>
      this.#earned.run(requests.map(crossing), crossingPolicy(policy), execute, signal, ended),
    );
    // Not the run itself, which would keep its episodes.
    const over = () => {};
    this.#last = run.then(over, over);
    return run;
  }

  get resetLost(): boolean {
    return this.#earned.lost;
  }

  set resetLost(lost: boolean) {
    this.#earned.lost = lost;
  }

  /** Time that the workers had a task in hand, all of them together, since the start [ms]; 0 without a clock. */
  get busyMs(): number {
    return this.#workers.busyMs;
  }

  /** Waits for the runs that have begun. */
  async close(): Promise<void> {
    await this.#last;
    await this.#workers.end();
  }

  async #run(
    requests: readonly RolloutRequest[],
    policy: PolicySpec,
    signal: AbortSignal | undefined,
    ended: Ended = () => {},
  ): Promise<readonly Episode[]> {
    const stop = new Int32Array(new SharedArrayBuffer(4));
    const cancel = () => Atomics.store(stop, 0, 1);
    if (signal?.aborted) cancel();
    signal?.addEventListener('abort', cancel);
    const { count, ownHosts } = this.#workers;
    try {
      const bounds = this.#bounds(policy);
      if (policy.kind === 'tokens') {
        const { name, version } = policy.policy;
        const send: SendTalk = async (port) => {
          const task: WorkerTask = { kind: 'converse', name, version, bounds, port, stop };
          const answer = await this.#workers.send(task, { transferList: [port] });
          return 'death' in answer ? answer.death : undefined;
        };
        const { tokenizer, format } = this.#inside;
        const conversation = new Conversation(policy, requests, send, {
          cancelled: () => isSet(stop),
          read: (reply, steps) => replyInTokens(reply, steps, tokenizer, format).action,
          notice: this.#notice,
        });
        await conversation.run(count);
        const episodes = requests.map((request) => conversation.episode(request.id));
        ended(episodes);
        return episodes;
      }
      // Made here too, so that what does not suit the environment is the caller's error and not each worker's.
      const { name, version } = this.#inside.policy(policy, requests);
      // 5 to 10 ms of work in each, a few for each worker, so that none waits long for the last.
      const most = ownHosts ? 256 : 128;
      const size = Math.min(most, Math.max(16, Math.ceil(requests.length / (4 * count))));
      const episodes = await inLanes(chunked(requests, size), 2 * count, async (chunk) => {
        const some = await this.#act(chunk, false, { policy, name, version, bounds, stop });
        ended(some);
        return some;
      });
      return episodes.flat();
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  }

  /**
   * Where a worker or its host dies, an episode of one of its chunks did it: each of them is run again, alone at a worker, so
   * that the others come to what they would have come to, and the one is a failure of its own. Not halves upon halves: what
   * hangs would be waited for at each of them.
   */
  async #act(
    requests: readonly RolloutRequest[],
    alone: boolean,
    how: {
      readonly policy: InsideSpec;
      readonly name: string;
      readonly version: number;
      readonly bounds: KnownBounds;
      readonly stop: Int32Array;
    },
  ): Promise<readonly Episode[]> {
    const { policy, name, bounds, stop } = how;
    const packed = packs(policy, requests);
    const task: WorkerTask = {
      kind: 'act',
      count: requests.length,
      requests: writeRequests(requests),
      packed,
      policy: shareOf(policy, requests),
      stop,
    };
    let answer: Served;
    try {
      answer = await this.#workers.send(task, { shared: !alone });
      if (!('death' in answer)) {
        const { format, tokenizer } = this.#inside;
        const { version } = how;
        // The tokens of a tabular policy are no texts.
        const longest = name === TABULAR ? Number.POSITIVE_INFINITY : tokenizer.longest;
        const cancelled = isSet(stop);
        // A host that chose it could have calls and answers in its own words where they are read from the texts, or the other way.
        if ('packed' in answer !== packed) throw untrusted('the form that was asked for');
        if ('packed' in answer) {
          // Taken out of the answer: piscina keeps its tasks in a map, and what a map once held V8 keeps until it clears its old
          // generation, which would be all bytes of tens of thousands of episodes.
          const bytes = new Uint8Array(answer.packed.buffer.transfer());
          return unpackEpisodes(bytes, requests, { format, name, version, bounds, longest, cancelled });
        }
        const episodes = readEpisodes(answer.episodes, requests, name, bounds);
        const known = policy.kind === 'recorded' || requests.some(({ fork }) => fork?.goesOn) ? null : version;
        for (const episode of episodes) checkActed(episode, known, cancelled);
        return episodes;
      }
    } catch (error) {
      const lied = error instanceof IsogymError && error.code === 'UNTRUSTED';
      if (error instanceof IsogymError && !lied) throw error;
      answer = { death: { kind: lied ? 'untrusted' : 'died', message: messageOf(error) } };
    }
    const { kind, message } = answer.death;
    // One that was not alone may have found its worker in a bad way.
    if (alone) return requests.map((request) => failedEpisode(request, name, 'sandbox-failure', message, kind));
    return (await Promise.all(requests.map((request) => this.#act([request], true, how)))).flat();
  }

  /** What an episode's record can hold at most. */
  #bounds(policy: PolicySpec): KnownBounds {
    const { tabular, limits } = this.#inside.environment;
    const name = policy.kind === 'recorded' ? policy.name : policy.kind;
    const own = name === TABULAR && tabular !== undefined;
    const vocabulary = own ? tabular.states + tabular.actions.length : this.#inside.tokenizer.size;
    // A policy's own view of a state stands outside the limit.
    return { vocabulary, maxSteps: limits.maxSteps, maxTokens: limits.maxTokens + limits.maxSteps };
  }
}

function isSet(stop: Int32Array): boolean {
  return Atomics.load(stop, 0) === 1;
}

/** What a chunk needs of a policy: of records those of its own episodes. */
function shareOf(policy: InsideSpec, requests: readonly RolloutRequest[]): InsideSpec {
  if (policy.kind !== 'recorded') return policy;
  const ids = new Set(requests.map(({ id }) => id));
  return { ...policy, episodes: policy.episodes.filter(({ id }) => ids.has(id)) };
}

/** In order, so many at a time: each worker has its next in hand, and what is asked for meanwhile is not behind all of them. */
async function inLanes<T, R>(items: readonly T[], lanes: number, each: (item: T) => Promise<R>): Promise<readonly R[]> {
  const results = new Array<R>(items.length);
  let next = 0;
  const lane = async () => {
    while (next < items.length) {
      const place = next++;
      try {
        results[place] = await each(items[place] as T);
      } catch (error) {
        // The others begin nothing more.
        next = items.length;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return results;
}

function chunked<T>(items: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size));
}
