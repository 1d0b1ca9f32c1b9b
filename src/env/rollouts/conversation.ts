/**
 * @module A run of a token policy over a pool: the workers' episodes ask, and the tokens are made here, in one batch. What was
 * answered is kept, so that episodes whose worker died are told the same again and come to where they were.
 */
import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import type { TokenPolicy, TokenRequest } from '../../policy/token-policy.ts';
import { IsogymError, messageOf } from '../../records/errors.ts';
import { type Episode, mayBeUsable } from '../../records/trajectory.ts';
import type { Death } from '../sandbox/host/protocol.ts';
import { failedEpisode } from '../transcript.ts';
import { Batcher, type TokenAnswer } from './batcher.ts';
import { checkTold, type ReadReply } from './issued.ts';
import type { RolloutRequest, TokenSpec } from './rollouts.ts';
import { strayedAt } from './told-again.ts';
import type { FromWorker, ToWorker } from './work.ts';

/** Has a worker talk over the port; resolves once it is told that it is over and all that began there has ended, or to the worker's death. */
export type SendTalk = (port: MessagePort) => Promise<Death | undefined>;

const NO_DEATH: Death = { kind: 'died', message: 'its worker ended without it' };

interface Asked {
  readonly request: TokenRequest;
  readonly reply: Promise<TokenAnswer>;
  settled: boolean;
  answer: TokenAnswer | undefined;
}

/** One worker's part in the run. */
interface Lane {
  /** Begun here and not ended. */
  readonly live: Map<string, RolloutRequest>;
  /** Tells its worker, once that hears; absent where it does not, or no more. */
  tell: { readonly begin: (request: RolloutRequest) => void; readonly over: () => void } | undefined;
  /** Whether its worker has heard. One that has not began nobody. */
  heard: boolean;
  /** Takes no more: its worker ended, and who did it is looked for; or too often, for no reason that is known. */
  state: 'open' | 'mending' | 'closed';
}

export class Conversation {
  readonly #policy: TokenPolicy;
  readonly #batcher: Batcher;
  readonly #requests: ReadonlyMap<string, RolloutRequest>;
  readonly #send: SendTalk;
  readonly #cancelled: () => boolean;
  readonly #read: ReadReply;
  readonly #notice: (text: string) => void;
  /** All that each episode has asked, in order. */
  readonly #log = new Map<string, Asked[]>();
  readonly #episodes = new Map<string, Episode>();
  #lanes: readonly Lane[] = [];
  /** No more will begin: all have ended, or the run has failed. */
  #over = false;

  /** @param o.cancelled whether the run is. @param o.notice told what a person should know. @throws DUPLICATE_EPISODE */
  constructor(
    spec: TokenSpec,
    requests: readonly RolloutRequest[],
    send: SendTalk,
    o: { readonly cancelled: () => boolean; readonly read: ReadReply; readonly notice: (text: string) => void },
  ) {
    this.#policy = spec.policy;
    this.#requests = new Map(requests.map((request) => [request.id, request]));
    this.#cancelled = o.cancelled;
    this.#read = o.read;
    this.#notice = o.notice;
    this.#batcher = new Batcher(spec.policy, requests, spec.schedule);
    this.#send = send;
  }

  /**
   * Runs until every episode has ended, in so many workers at most: who begins does so where the fewest live. Where one worker fails
   * for a reason outside its episodes, the others are ended too, so that none is left waiting, and the run fails with that reason.
   */
  async run(workers: number): Promise<void> {
    let failed: { readonly error: unknown } | undefined;
    const fail = (error: unknown) => {
      failed ??= { error };
      this.#batcher.abandon(error);
      this.#finish();
    };
    this.#lanes = Array.from({ length: Math.min(workers, this.#requests.size) }, () => laneOf([]));
    for (const request of this.#requests.values())
      void this.#batcher.begun(request.id).then(() => this.#begin(request));
    const all = [this.#batcher.run(), ...this.#lanes.map((lane) => this.#lane(lane))];
    await Promise.all(all.map((one) => one.catch(fail)));
    if (failed !== undefined) throw failed.error;
  }

  /** What came of an episode, once the run is over. */
  episode(id: string): Episode {
    return this.#episodes.get(id) as Episode;
  }

  /** In the lane where the fewest live; one that is being mended takes it later. */
  #begin(request: RolloutRequest): void {
    if (this.#over) return;
    const able = (state: Lane['state']) => this.#lanes.filter((lane) => lane.state === state);
    const open = able('open');
    const lane = (open.length > 0 ? open : able('mending')).reduce((least, one) =>
      one.live.size < least.live.size ? one : least,
    );
    lane.live.set(request.id, request);
    lane.tell?.begin(request);
  }

  #finish(): void {
    // Told twice, a worker would leave one of its episodes behind.
    if (this.#over) return;
    this.#over = true;
    for (const { tell } of this.#lanes) tell?.over();
  }

  /**
   * One worker's lane. Where the worker dies, one of the episodes that live in it did it: each is told again, alone, what it
   * was told, up to where it waits for more. The one that takes its worker down is a failure of its own; the others go on,
   * together, from where they were. Where none does, nothing is known of who did it, and all of them have failed. A worker that
   * ends while nobody lives in it, or before it has heard of anybody, is replaced once.
   */
  async #lane(lane: Lane): Promise<void> {
    let replaced = false;
    while (!this.#over || lane.live.size > 0) {
      lane.state = 'open';
      const death = await this.#talk('live', lane);
      const suspects = lane.heard ? [...lane.live.values()] : [];
      if (suspects.length > 0) {
        lane.state = 'mending';
        if (death === undefined) this.#fail(suspects, NO_DEATH);
        else await this.#findOffenders(suspects, death);
      } else if (!this.#over || lane.live.size > 0) {
        if (replaced) return this.#close(lane, death ?? NO_DEATH);
        const { message } = death ?? NO_DEATH;
        this.#notice(`A worker ended while no episode lived in it (${message}): it is replaced, once.`);
        replaced = true;
      }
    }
  }

  /** The others take its part, with those that never began in it. Where it was the last, what is left has failed. */
  #close(lane: Lane, death: Death): void {
    lane.state = 'closed';
    if (this.#lanes.some(({ state }) => state !== 'closed')) {
      const left = [...lane.live.values()];
      lane.live.clear();
      for (const request of left) this.#begin(request);
      return;
    }
    this.#fail(
      [...this.#requests.values()].filter(({ id }) => !this.#episodes.has(id)),
      death,
    );
  }

  async #findOffenders(suspects: readonly RolloutRequest[], death: Death): Promise<void> {
    const offenders = new Map<RolloutRequest, Death>();
    if (suspects.length === 1) offenders.set(suspects[0] as RolloutRequest, death);
    else {
      for (const request of suspects) {
        const again = await this.#talk('replay', laneOf([[request.id, request]]));
        if (again !== undefined) offenders.set(request, again);
      }
    }
    if (offenders.size === 0) this.#fail(suspects, death);
    for (const [request, its] of offenders) this.#fail([request], its);
  }

  #fail(requests: readonly RolloutRequest[], { kind, message }: Death): void {
    for (const request of requests) {
      this.#end(failedEpisode(request, this.#policy.name, 'sandbox-failure', message, kind));
    }
  }

  async #talk(mode: 'live' | 'replay', lane: Lane): Promise<Death | undefined> {
    const { port1: ours, port2: theirs } = new MessageChannel();
    lane.heard = false;
    const serve = this.#server(ours, mode, lane);
    try {
      const death = await this.#send(theirs).catch((error: unknown): Death => {
        // Of the run, not of an episode.
        if (error instanceof IsogymError) throw error;
        return { kind: 'died', message: messageOf(error) };
      });
      // The task's end and its last words come by two ways: what was said before the end is in the port by now.
      for (let left = receiveMessageOnPort(ours); left !== undefined; left = receiveMessageOnPort(ours)) {
        serve(left.message as FromWorker);
      }
      return death;
    } finally {
      lane.tell = undefined;
      ours.close();
    }
  }

  /** Answers what a worker asks; the replies of one tick go back in one message. */
  #server(ours: MessagePort, mode: 'live' | 'replay', lane: Lane): (messages: FromWorker) => void {
    let outbox: ToWorker[number][] = [];
    const flush = () => {
      ours.postMessage(outbox satisfies ToWorker);
      outbox = [];
    };
    const post = (message: ToWorker[number]) => {
      if (outbox.push(message) === 1) queueMicrotask(flush);
    };
    /** In a message of its own: it may come with a long past, and with what cannot be copied to a thread, which is its own failure. */
    const begin = (request: RolloutRequest) => {
      try {
        ours.postMessage([{ begin: request }] satisfies ToWorker);
      } catch (error) {
        this.#fail([request], { kind: 'died', message: messageOf(error) });
      }
    };
    const over = () => post({ over: true });
    const tell = () => {
      lane.heard = true;
      lane.tell = { begin, over };
      for (const request of lane.live.values()) begin(request);
      if (mode === 'replay' || this.#over) over();
    };
    const told = new Map<string, number>();
    const serve = (messages: FromWorker) => {
      for (const message of messages) {
        if ('hears' in message) {
          tell();
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
        if (typeof asked === 'string') post({ episodeId, error: asked });
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

  /** What was asked at this turn of an episode: from the log, or, in a live talk, of the policy. Or why there is no answer. */
  #asked(request: TokenRequest, turn: number, mode: 'live' | 'replay'): Asked | string {
    const { episodeId } = request;
    const log = this.#log.get(episodeId) ?? [];
    const known = log[turn];
    const strayed = known && strayedAt(turn, known.request, request);
    if (strayed !== undefined) {
      this.#fail([this.#requests.get(episodeId) as RolloutRequest], { kind: 'died', message: strayed });
      return strayed;
    }
    if (known !== undefined && (mode === 'live' || known.settled)) return known;
    if (mode === 'replay') return 'it has been told all that there was';
    const asked: Asked = { request, reply: this.#batcher.ask(request), settled: false, answer: undefined };
    const settle = (answer?: TokenAnswer) => {
      asked.settled = true;
      asked.answer = answer;
    };
    asked.reply.then(settle, () => settle());
    this.#log.set(episodeId, [...log, asked]);
    return asked;
  }

  /** What it says that was sampled, and why it ended, is held against what it was told. One that does not fit is a failure of its own. */
  #checked(episode: Episode): Episode {
    const { id } = episode;
    const { name, version } = this.#policy;
    const request = this.#requests.get(id) as RolloutRequest;
    try {
      const told = this.#log.get(id) ?? [];
      checkTold(episode, request, told, { version, cancelled: this.#cancelled(), read: this.#read });
      return episode;
    } catch (error) {
      return failedEpisode(request, name, 'sandbox-failure', messageOf(error), 'untrusted');
    }
  }

  /** The first end of an episode stands: a worker that has not heard of it may still send its own. */
  #end(episode: Episode): void {
    if (this.#episodes.has(episode.id)) return;
    this.#episodes.set(episode.id, episode);
    this.#log.delete(episode.id);
    for (const { live } of this.#lanes) live.delete(episode.id);
    this.#batcher.end(episode.id, mayBeUsable(episode));
    if (this.#episodes.size === this.#requests.size) this.#finish();
  }
}

function laneOf(live: Iterable<[string, RolloutRequest]>): Lane {
  return { live: new Map(live), tell: undefined, heard: false, state: 'open' };
}
