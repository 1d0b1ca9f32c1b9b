/**
 * @module Episodes stepped together: many live at once in one thread, the calls of a step of all of them made with one entry into
 * their isolate. For worlds that are used again (reset level `state`) and policies that act beside them.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Policy } from '../../policy/policy.ts';
import { messageOf } from '../../records/errors.ts';
import { frozen } from '../../records/json.ts';
import { deriveSeed } from '../../records/random.ts';
import { type Episode, isRepeatable } from '../../records/trajectory.ts';
import { acted, isLate, type LiveEpisode, liveEpisode, type Need, type StopSignal, sent } from '../episode.ts';
import type { Inside } from '../inside.ts';
import type { Realm, WorldOutcome } from '../sandbox/realm.ts';
import type { RealmOperation } from '../sandbox/realm-pool.ts';
import { WorldFailure, type WorldHost } from '../sandbox/world-host.ts';
import { failedEpisode } from '../transcript.ts';
import type { RolloutRequest } from './rollouts.ts';

/** A place among those that live at once; an episode that ends makes room for the next. */
interface Slot {
  readonly place: number;
  readonly request: RolloutRequest;
  readonly realm: Realm;
  /** Undefined until its world has been opened. */
  live: LiveEpisode | undefined;
  /** What it waits for. */
  waiting: RealmOperation;
}

/** All of a host that is asked of it. */
export type SteppedHost = Pick<WorldHost, 'take' | 'opening' | 'runAll' | 'failureOf' | 'give' | 'forget'>;

type Alone = (request: RolloutRequest, policy: Policy, signal: StopSignal | undefined) => Promise<Episode>;

/** As many contexts as share an isolate of the default size; more in one entry would save little. */
const LIVE = 16;

/** At most one in so many of a run's episodes lives at once, so that worlds are used again in a small run too, and what one keeps shows. */
const USES = 4;

/** Steps of all that live, between two looks at the event loop: an interrupt is an event. */
const TURN = 4;

export class SteppedEpisodes {
  readonly #inside: Inside;
  readonly #host: SteppedHost;
  readonly #alone: Alone;
  #live = LIVE;

  /** @param alone runs an episode from its beginning, with nobody beside it */
  constructor(inside: Inside, host: SteppedHost, alone: Alone) {
    this.#inside = inside;
    this.#host = host;
    this.#alone = alone;
  }

  /**
   * One episode for each request, in order, each given as soon as those before it have been. Where a world runs late or ends its
   * isolate, or memory is short, those whose outcome is not known are run again alone, from the beginning: what they come to does
   * not depend on their neighbours. Where none of them was to blame, their calls are too long or their worlds too large to be run
   * together, and from then on fewer are.
   */
  async run(
    requests: readonly RolloutRequest[],
    policy: Policy,
    signal: StopSignal | undefined,
    each: (episode: Episode) => void,
  ): Promise<void> {
    const ended = new Map<number, Episode>();
    let given = 0;
    const give = () => {
      for (let episode = ended.get(given); episode !== undefined; episode = ended.get(given)) {
        each(episode);
        ended.delete(given++);
      }
    };
    const live = Math.min(this.#live, Math.ceil(requests.length / USES));
    const slots = new Set<Slot>();
    /** Places of those that are run again. */
    const lost: number[] = [];
    let next = 0;
    try {
      for (let tick = 1; slots.size > 0 || next < requests.length; tick++) {
        for (; slots.size < live && next < requests.length; next++) {
          const begun = this.#begin(requests[next] as RolloutRequest, next, policy, signal);
          if (begun === undefined) lost.push(next);
          else if ('realm' in begun) slots.add(begun);
          else ended.set(next, begun);
        }
        const waiting = [...slots];
        const outcomes = this.#host.runAll(waiting.map((slot) => slot.waiting));
        for (const [i, slot] of waiting.entries()) {
          const outcome = outcomes[i];
          const step = outcome && this.#step(slot, outcome, policy, signal);
          const episode = isLate(step) ? await step : step;
          if (outcome !== undefined && episode === undefined) continue;
          this.#end(slot, slots, policy);
          if (episode === undefined) lost.push(slot.place);
          else ended.set(slot.place, episode);
        }
        give();
        if (tick % TURN === 0) await nextTurn();
      }
    } finally {
      // What an error has interrupted.
      for (const slot of slots) this.#end(slot, slots, policy);
    }
    this.#host.forget();
    // Once nobody else lives.
    const again: Episode[] = [];
    for (const place of lost) {
      const episode = await this.#alone(requests[place] as RolloutRequest, policy, signal);
      again.push(episode);
      ended.set(place, episode);
      give();
    }
    if (again.length > 0 && again.every(isRepeatable)) this.#live = Math.ceil(this.#live / 2);
  }

  /** Undefined where there is no room for its world: that may be its neighbours' doing. */
  #begin(
    request: RolloutRequest,
    place: number,
    policy: Policy,
    signal: StopSignal | undefined,
  ): Slot | Episode | undefined {
    if (signal?.aborted) return failedEpisode(request, policy.name, 'cancelled', 'it had not begun');
    // Rollouts of one task share it: a script that changed it would change what its siblings are begun with.
    frozen(request.task.public);
    let realm: Realm;
    try {
      realm = this.#host.take();
    } catch {
      return undefined;
    }
    const json = JSON.stringify(request.task.public);
    const waiting = this.#host.opening(realm, json, deriveSeed(request.seed, 'world'));
    return { place, request, realm, live: undefined, waiting };
  }

  #end(slot: Slot, slots: Set<Slot>, policy: Policy): void {
    slots.delete(slot);
    policy.release?.(slot.request.id);
    // A module that opened no world may be left half initialised.
    this.#host.give(slot.realm, slot.live !== undefined);
  }

  /** Until it needs its world again, or ends. */
  #step(
    slot: Slot,
    outcome: WorldOutcome,
    policy: Policy,
    signal: StopSignal | undefined,
  ): Episode | undefined | Promise<Episode | undefined> {
    if (slot.live !== undefined) return onward(slot, sent(slot.live, outcome), policy);
    const { request } = slot;
    if (outcome.status !== 'ok') return notOpened(request, policy.name, this.#host.failureOf(outcome));
    const { environment, format, tokenizer } = this.#inside;
    const stop = signal === undefined ? {} : { signal };
    slot.live = liveEpisode({ request, environment, format, policy, tokenizer, ...stop });
    return onward(slot, slot.live.next(), policy);
  }
}

function onward(
  slot: Slot,
  result: IteratorResult<Need, Episode>,
  policy: Policy,
): Episode | undefined | Promise<Episode | undefined> {
  if (result.done === true) return result.value;
  const need = result.value;
  if ('tool' in need) {
    const { tool, argsJson, timeoutMs } = need;
    slot.waiting = { realm: slot.realm, operation: 'call', a: tool, b: argsJson, timeoutMs };
    return undefined;
  }
  const next = acted(slot.live as LiveEpisode, need, policy);
  return isLate(next) ? next.then((late) => onward(slot, late, policy)) : onward(slot, next, policy);
}

export function notOpened(request: RolloutRequest, policy: string, error: unknown): Episode {
  const failure = error instanceof WorldFailure ? error.failure : undefined;
  const stop = failure === undefined ? 'environment-failure' : 'sandbox-failure';
  return failedEpisode(request, policy, stop, messageOf(error), failure);
}
