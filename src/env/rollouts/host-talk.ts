/**
 * @module What a sandbox host may say in a conversation, read as if an attacker had said it: that it hears, once, and of an episode
 * that was told to begin, one question at a time and in the end the record. Not the channel itself.
 */

import { objectOf, untrusted } from '../sandbox/host/protocol.ts';
import type { RolloutRequest } from './rollouts.ts';
import { type KnownBounds, readEpisode, readTokenRequest } from './untrusted.ts';
import type { FromWorker, ToWorker } from './work.ts';

export class HostTalk {
  readonly #name: string;
  readonly #bounds: KnownBounds;
  /** Told to begin, and not ended. */
  readonly #open = new Map<string, RolloutRequest>();
  /** How often each has asked. */
  readonly #asked = new Map<string, number>();
  /** Wait for an answer: the batch waits for whoever does not, so a second question would have it wait for ever. */
  readonly #waiting = new Set<string>();
  #hears = false;

  constructor(name: string, bounds: KnownBounds) {
    this.#name = name;
    this.#bounds = bounds;
  }

  /** To be called with what the host is told, before it is. */
  told(messages: ToWorker): void {
    for (const message of messages) {
      if ('begin' in message) this.#open.set(message.begin.id, message.begin);
      else if ('episodeId' in message) this.#waiting.delete(message.episodeId);
    }
  }

  /** @throws UNTRUSTED */
  heard(body: unknown): FromWorker {
    if (!Array.isArray(body)) throw untrusted('a list of messages');
    return body.map((message): FromWorker[number] => {
      const { hears, ask, ended } = objectOf(message);
      if (hears === true) {
        if (this.#hears) throw untrusted('that it hears, once');
        this.#hears = true;
        return { hears };
      }
      return ask === undefined ? { ended: this.#end(ended) } : { ask: this.#ask(ask) };
    });
  }

  #ask(ask: unknown): ReturnType<typeof readTokenRequest> {
    const request = readTokenRequest(ask, this.#open, this.#bounds);
    const { episodeId, newIds } = request;
    if (this.#waiting.has(episodeId)) throw untrusted('one question at a time');
    const asked = this.#asked.get(episodeId) ?? 0;
    if (newIds.length === 0 && asked === 0) throw untrusted('a context to begin with');
    // Each has a step come of it, or the end: one that asks for ever would be answered for ever.
    if (asked === this.#bounds.maxSteps) throw untrusted(`at most ${asked} questions of an episode`);
    this.#asked.set(episodeId, asked + 1);
    this.#waiting.add(episodeId);
    return request;
  }

  #end(ended: unknown): ReturnType<typeof readEpisode> {
    const request = this.#open.get(String(objectOf(ended).id));
    if (request === undefined) throw untrusted('the end of an episode that has begun');
    this.#open.delete(request.id);
    return readEpisode(ended, request, this.#name, this.#bounds);
  }
}
