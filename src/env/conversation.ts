/**
 * @module A run of a token policy over a pool: the workers' episodes ask, and the tokens are made here, in one batch. What was
 * answered is kept, so that episodes whose worker died are told the same again and come to where they were.
 */
import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import type { TokenPolicy, TokenRequest } from '../policy/token-policy.ts';
import { IsogymError, messageOf } from '../records/errors.ts';
import { stopRule } from '../records/stop-reason.ts';
import type { Episode } from '../records/trajectory.ts';
import { Batcher, type TokenAnswer } from './batcher.ts';
import { checkTold } from './issued.ts';
import type { RolloutRequest, TokenSpec } from './rollouts.ts';
import type { Death } from './sandbox/host/protocol.ts';
import { failedEpisode } from './transcript.ts';
import type { FromWorker, ToWorker } from './work.ts';

/** Sends episodes to a worker; resolves once they have ended, or to the worker's death. */
export type SendShare = (requests: readonly RolloutRequest[], port: MessagePort) => Promise<Death | undefined>;

interface Asked {
  readonly request: TokenRequest;
  readonly reply: Promise<TokenAnswer>;
  settled: boolean;
  answer: TokenAnswer | undefined;
}

export class Conversation {
  readonly #policy: TokenPolicy;
  readonly #batcher: Batcher;
  readonly #requests: ReadonlyMap<string, RolloutRequest>;
  readonly #send: SendShare;
  readonly #cancelled: () => boolean;
  /** All that each episode has asked, in order. */
  readonly #log = new Map<string, Asked[]>();
  readonly #episodes = new Map<string, Episode>();

  /** @param cancelled whether the run is. @throws DUPLICATE_EPISODE */
  constructor(spec: TokenSpec, requests: readonly RolloutRequest[], send: SendShare, cancelled: () => boolean) {
    this.#policy = spec.policy;
    this.#requests = new Map(requests.map((request) => [request.id, request]));
    this.#cancelled = cancelled;
    this.#batcher = new Batcher(spec.policy, requests, spec.schedule);
    this.#send = send;
  }

  /** Runs the shares, one a worker, until every episode has ended. */
  async run(shares: readonly (readonly RolloutRequest[])[]): Promise<void> {
    await Promise.all([this.#batcher.run(), ...shares.map((share) => this.#share(share))]);
  }

  /** What came of an episode, once its share has been run. */
  episode(id: string): Episode {
    return this.#episodes.get(id) as Episode;
  }

  /**
   * One worker's share. Where the worker dies, one of the episodes that live in it did it: each is told again, alone, what it
   * was told, up to where it waits for more. The one that takes its worker down is a failure of its own; the others go on,
   * together, from where they were. Where none does, nothing is known of who did it, and all of them have failed. Those that had
   * not begun did nothing.
   */
  async #share(share: readonly RolloutRequest[]): Promise<void> {
    const fail = (requests: readonly RolloutRequest[], { kind, message }: Death) => {
      for (const request of requests) {
        this.#end(failedEpisode(request, this.#policy.name, 'sandbox-failure', message, kind));
      }
    };
    for (let open = share; open.length > 0; ) {
      const death = await this.#talk(open, 'live');
      open = open.filter((request) => !this.#episodes.has(request.id));
      const suspects = open.filter(({ id }) => this.#batcher.hasBegun(id));
      if (death === undefined || suspects.length === 0) {
        fail(open, death ?? { kind: 'died', message: 'its worker ended without it' });
        return;
      }
      const offenders = new Map<RolloutRequest, Death>();
      if (suspects.length === 1) offenders.set(suspects[0] as RolloutRequest, death);
      else {
        for (const request of suspects) {
          const again = await this.#talk([request], 'replay');
          if (again !== undefined) offenders.set(request, again);
        }
      }
      if (offenders.size === 0) fail(suspects, death);
      for (const [request, its] of offenders) fail([request], its);
      open = open.filter((request) => !this.#episodes.has(request.id));
    }
  }

  async #talk(requests: readonly RolloutRequest[], mode: 'live' | 'replay'): Promise<Death | undefined> {
    const { port1: ours, port2: theirs } = new MessageChannel();
    const serve = this.#server(ours, mode, requests);
    let death: Death | undefined;
    try {
      death = await this.#send(requests, theirs);
    } catch (error) {
      // Of the run, not of an episode.
      if (error instanceof IsogymError) throw error;
      death = { kind: 'died', message: messageOf(error) };
    }
    // The task's end and its last words come by two ways: what was said before the end is in the port by now.
    for (let left = receiveMessageOnPort(ours); left !== undefined; left = receiveMessageOnPort(ours)) {
      serve(left.message as FromWorker);
    }
    ours.close();
    return death;
  }

  /** Answers what a worker asks; the replies of one tick go back in one message. */
  #server(
    ours: MessagePort,
    mode: 'live' | 'replay',
    requests: readonly RolloutRequest[],
  ): (messages: FromWorker) => void {
    let outbox: ToWorker[number][] = [];
    const flush = () => {
      ours.postMessage(outbox satisfies ToWorker);
      outbox = [];
    };
    const post = (message: ToWorker[number]) => {
      if (outbox.push(message) === 1) queueMicrotask(flush);
    };
    const begin = () => {
      for (const { id } of requests) {
        if (mode === 'replay') post({ begin: id });
        else this.#batcher.begun(id).then(() => post({ begin: id }));
      }
    };
    const told = new Map<string, number>();
    const serve = (messages: FromWorker) => {
      for (const message of messages) {
        if ('hears' in message) {
          begin();
          continue;
        }
        if ('ended' in message) {
          if (mode === 'live') this.#end(this.#checked(message.ended));
          continue;
        }
        const { episodeId } = message.ask;
        const turn = told.get(episodeId) ?? 0;
        told.set(episodeId, turn + 1);
        const asked = this.#asked(message.ask, turn, mode);
        if (asked === undefined) post({ episodeId, error: 'it has been told all that there was' });
        else {
          asked.reply.then(
            (reply) => post({ episodeId, reply }),
            (error: unknown) => post({ episodeId, error: messageOf(error) }),
          );
        }
      }
    };
    ours.on('message', serve);
    return serve;
  }

  /** What was asked at this turn of an episode: from the log, or, in a live talk, of the policy. */
  #asked(request: TokenRequest, turn: number, mode: 'live' | 'replay'): Asked | undefined {
    const log = this.#log.get(request.episodeId) ?? [];
    const known = log[turn];
    if (known !== undefined && (mode === 'live' || known.settled)) return known;
    if (mode === 'replay') return undefined;
    const asked: Asked = { request, reply: this.#batcher.ask(request), settled: false, answer: undefined };
    const settle = (answer?: TokenAnswer) => {
      asked.settled = true;
      asked.answer = answer;
    };
    asked.reply.then(settle, () => settle());
    this.#log.set(request.episodeId, [...log, asked]);
    return asked;
  }

  /** What it says that was sampled, and why it ended, is held against what it was told. One that does not fit is a failure of its own. */
  #checked(episode: Episode): Episode {
    const { id } = episode;
    const { name, version } = this.#policy;
    const request = this.#requests.get(id) as RolloutRequest;
    try {
      checkTold(episode, request, this.#log.get(id) ?? [], version, this.#cancelled());
      return episode;
    } catch (error) {
      return failedEpisode(request, name, 'sandbox-failure', messageOf(error), 'untrusted');
    }
  }

  #end(episode: Episode): void {
    this.#episodes.set(episode.id, episode);
    this.#log.delete(episode.id);
    this.#batcher.end(episode.id, stopRule(episode.stop).usable);
  }
}
