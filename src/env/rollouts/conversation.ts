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
import { checkTold } from './issued.ts';
import type { RolloutRequest, TokenSpec } from './rollouts.ts';
import { strayedAt } from './told-again.ts';
import type { FromWorker, ToWorker } from './work.ts';

/** Sends episodes to a worker; resolves once they have ended, or to the worker's death. */
export type SendShare = (requests: readonly RolloutRequest[], port: MessagePort) => Promise<Death | undefined>;

const NO_DEATH: Death = { kind: 'died', message: 'its worker ended without it' };

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
  readonly #notice: (text: string) => void;
  /** All that each episode has asked, in order. */
  readonly #log = new Map<string, Asked[]>();
  readonly #episodes = new Map<string, Episode>();

  /** @param o.cancelled whether the run is. @param o.notice told what a person should know. @throws DUPLICATE_EPISODE */
  constructor(
    spec: TokenSpec,
    requests: readonly RolloutRequest[],
    send: SendShare,
    o: { readonly cancelled: () => boolean; readonly notice: (text: string) => void },
  ) {
    this.#policy = spec.policy;
    this.#requests = new Map(requests.map((request) => [request.id, request]));
    this.#cancelled = o.cancelled;
    this.#notice = o.notice;
    this.#batcher = new Batcher(spec.policy, requests, spec.schedule);
    this.#send = send;
  }

  /**
   * Runs the shares, one a worker, until every episode has ended. Where one fails for a reason outside its episodes, the others
   * are ended too, so that no worker is left waiting, and the run fails with that reason.
   */
  async run(shares: readonly (readonly RolloutRequest[])[]): Promise<void> {
    let failed: { readonly error: unknown } | undefined;
    const fail = (error: unknown) => {
      failed ??= { error };
      this.#batcher.abandon(error);
    };
    const all = [this.#batcher.run(), ...shares.map((share) => this.#share(share))];
    await Promise.all(all.map((one) => one.catch(fail)));
    if (failed !== undefined) throw failed.error;
  }

  /** What came of an episode, once its share has been run. */
  episode(id: string): Episode {
    return this.#episodes.get(id) as Episode;
  }

  /**
   * One worker's share. Where the worker dies, one of the episodes that live in it did it: each is told again, alone, what it
   * was told, up to where it waits for more. The one that takes its worker down is a failure of its own; the others go on,
   * together, from where they were. Where none does, nothing is known of who did it, and all of them have failed. Those that had
   * not begun did nothing and are begun in another worker; one that dies before anybody has begun is replaced once.
   */
  async #share(share: readonly RolloutRequest[]): Promise<void> {
    const stillOpen = (requests: readonly RolloutRequest[]) => requests.filter(({ id }) => !this.#episodes.has(id));
    let replaced = false;
    for (let open = share; open.length > 0; open = stillOpen(open)) {
      const death = await this.#talk(open, 'live');
      open = stillOpen(open);
      if (open.length === 0) return;
      const { message } = death ?? NO_DEATH;
      const suspects = open.filter(({ id }) => this.#batcher.hasBegun(id));
      if (suspects.length === 0) {
        if (replaced) this.#fail(open, death ?? NO_DEATH);
        else {
          const who = `${open.length} episodes, ${open[0]?.id} the first of them, had not begun when their worker ended`;
          this.#notice(`${who} (${message}): they are tried once more.`);
        }
        replaced = true;
      } else if (death === undefined) this.#fail(suspects, NO_DEATH);
      else await this.#findOffenders(suspects, death);
    }
  }

  async #findOffenders(suspects: readonly RolloutRequest[], death: Death): Promise<void> {
    const offenders = new Map<RolloutRequest, Death>();
    if (suspects.length === 1) offenders.set(suspects[0] as RolloutRequest, death);
    else {
      for (const request of suspects) {
        const again = await this.#talk([request], 'replay');
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

  async #talk(requests: readonly RolloutRequest[], mode: 'live' | 'replay'): Promise<Death | undefined> {
    const { port1: ours, port2: theirs } = new MessageChannel();
    const serve = this.#server(ours, mode, requests);
    try {
      const death = await this.#send(requests, theirs).catch((error: unknown): Death => {
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
      ours.close();
    }
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
      checkTold(episode, request, this.#log.get(id) ?? [], version, this.#cancelled());
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
    this.#batcher.end(episode.id, mayBeUsable(episode));
  }
}
