/**
 * @module Reset level `state` is earned: an episode in a world that was re-initialised in place comes to the same hashes in a
 * fresh context. It is tried at the start, on the environment's own scripts, and on a sample of all episodes, which their seeds
 * choose. The first that differs ends it: fresh contexts from then on, and for the run that it was found in.
 */
import { type Episode, isRepeatable } from '../../records/trajectory.ts';
import type { Environment, ResetLevel } from '../environment.ts';
import { type Difference, firstDifference } from '../replay.ts';
import { packs } from './packed.ts';
import type { Ended, PolicySpec, RolloutRequest } from './rollouts.ts';

/** The share of episodes that are run twice. */
const SHARE = 0.01;
/** At the start: tasks, one after another in the same world, and scripts. */
const TASKS = 8;
const SCRIPTS = 4;

/** Whether an episode of this seed is run a second time, in a fresh context. */
export function isSampled(seed: string): boolean {
  // FNV-1a, and the last steps of MurmurHash3, which spread it: asked of every episode, and SHA-256 would cost ten times as much.
  let h = 0x811c9dc5;
  for (let i = 0; i < seed.length; i++) h = Math.imul(h ^ seed.charCodeAt(i), 0x01000193);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0 < SHARE * 2 ** 32;
}

export type Execute = (
  requests: readonly RolloutRequest[],
  policy: PolicySpec,
  ended?: Ended,
) => Promise<readonly Episode[]>;

export class EarnedReset {
  readonly #environment: Pick<Environment, 'name' | 'task' | 'scripts' | 'reset'>;
  readonly #notice: (text: string) => void;
  #level: ResetLevel;

  /** @param notice told once, where the level is lost, and where it cannot be tried at the start */
  constructor(environment: Environment, notice: (text: string) => void) {
    this.#environment = environment;
    this.#level = environment.reset;
    this.#notice = notice;
  }

  /** Whether `state` was declared and is not used any more. */
  get lost(): boolean {
    return this.#level !== this.#environment.reset;
  }

  set lost(lost: boolean) {
    if (this.#environment.reset === 'state') this.#level = lost ? 'context' : 'state';
  }

  /** Before anything else is run. */
  async register(options: unknown, execute: Execute): Promise<void> {
    if (this.#level !== 'state') return;
    const { name, task, scripts } = this.#environment;
    const specs = Object.keys(scripts).slice(0, SCRIPTS);
    if (specs.length === 0) {
      this.#notice(`reset level state: ${name} has no script to try it with at the start; 1 % of the episodes will be`);
    }
    const requests = Array.from({ length: TASKS }, (_, index): RolloutRequest => {
      const { id, prompt, public: given } = task('reset', index, options);
      const key = `reset-${index}`;
      const own = { id, prompt, public: given };
      return { id: key, group: key, task: own, iteration: 0, rollout: 0, seed: `reset/${index}` };
    });
    const [script] = specs;
    if (script !== undefined) {
      // A world that does not open may cost 5 s each time: two say as much as all of them, and a run then ends by them.
      const first = await execute(requests.slice(0, 2), { kind: 'scripted', script });
      if (first.every(({ stop, steps }) => stop === 'environment-failure' && steps.length === 0)) return;
    }
    for (const script of specs) {
      const episodes = await execute(requests, { kind: 'scripted', script });
      const found = await this.#compare(episodes, byId(requests), { kind: 'scripted', script }, execute);
      if (found !== undefined) return this.#lost(found);
    }
  }

  /** The sample is run again beside those that still run. */
  async run(
    requests: readonly RolloutRequest[],
    policy: PolicySpec,
    execute: Execute,
    signal?: Pick<AbortSignal, 'aborted'>,
    ended: Ended = () => {},
  ): Promise<readonly Episode[]> {
    if (this.#level !== 'state') return execute(fresh(requests), policy, ended);
    const sample = byId(requests.filter(({ seed }) => isSampled(seed)));
    const comparisons = new Map<string, Promise<string | undefined>>();
    const compare: Ended = (some) => {
      ended(some);
      const sampled = some.filter(({ id }) => sample.has(id));
      if (sampled.length === 0 || signal?.aborted) return;
      const comparison = this.#compare(sampled, sample, policy, execute);
      comparison.catch(() => {});
      for (const { id } of sampled) comparisons.set(id, comparison);
    };
    // None of them outlives the run, however that ends.
    const settled = () => Promise.allSettled(comparisons.values());
    const episodes = await execute(requests, policy, compare).finally(settled);
    // In the order of the requests, so that what is said does not depend on who was first.
    for (const id of sample.keys()) {
      const found = await comparisons.get(id);
      if (found === undefined || signal?.aborted) continue;
      this.#lost(found);
      return execute(fresh(requests), policy, ended);
    }
    return episodes;
  }

  #lost(found: string): void {
    this.#level = 'context';
    this.#notice(found);
  }

  /** What to say of the first that comes to something else in a fresh context; undefined where none does. */
  async #compare(
    all: readonly Episode[],
    requests: ReadonlyMap<string, RolloutRequest>,
    policy: PolicySpec,
    execute: Execute,
  ): Promise<string | undefined> {
    const of = (episodes: readonly Episode[]) => fresh(episodes.map(({ id }) => requests.get(id) as RolloutRequest));
    let episodes = all.filter(isRepeatable);
    if (
      policy.kind !== 'tokens' &&
      packs(
        policy,
        all.flatMap(({ id }) => requests.get(id) ?? []),
      )
    ) {
      // Such a policy does the same again, and costs less than what its record says; where it comes to something else, that decides.
      const again = await execute(of(episodes), policy);
      episodes = episodes.filter(({ hash }, i) => hash !== again[i]?.hash);
    }
    const [first] = episodes;
    if (first === undefined) return undefined;
    const found = await execute(of(episodes), { kind: 'recorded', name: first.policy, episodes });
    for (const [i, episode] of episodes.entries()) {
      const now = found[i] as Episode;
      const difference = isRepeatable(now) ? firstDifference(episode, now) : undefined;
      if (difference !== undefined) return lostBy(this.#environment.name, episode, difference);
    }
    return undefined;
  }
}

function byId(requests: readonly RolloutRequest[]): ReadonlyMap<string, RolloutRequest> {
  return new Map(requests.map((request) => [request.id, request]));
}

function fresh(requests: readonly RolloutRequest[]): readonly RolloutRequest[] {
  return requests.map((request) => ({ ...request, fresh: true }));
}

function lostBy(environment: string, episode: Episode, { step, what, expected, found }: Difference): string {
  const short = (value: string) => (value.length > 80 ? `${value.slice(0, 80)}…` : value);
  const where = step === null ? 'its end' : `step ${step + 1}`;
  return (
    `reset level state is not earned by ${environment}: episode ${episode.id} came to ${short(expected)} in ${where} (${what}), ` +
    `and to ${short(found)} in a fresh context, so its world keeps something from one episode to the next. Fresh contexts from here on.`
  );
}
