/** @module Rollouts in the calling thread: the engine inside each worker, and one of its own. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Policy } from '../../policy/policy.ts';
import { continuedPolicy, forkedPolicy } from '../../policy/recorded.ts';
import { replyInTokens } from '../../policy/reply.ts';
import type { TokenRequest } from '../../policy/token-policy.ts';
import { frozen } from '../../records/json.ts';
import { deriveSeed } from '../../records/random.ts';
import { type Episode, mayBeUsable, type Step } from '../../records/trajectory.ts';
import type { ResetLevel } from '../environment.ts';
import { Halted, runEpisode, type StopSignal } from '../episode.ts';
import { Inside } from '../inside.ts';
import { importEnvironment } from '../load.ts';
import { bundle } from '../sandbox/bundle.ts';
import { WorldHost, type WorldSession } from '../sandbox/world-host.ts';
import { failedEpisode } from '../transcript.ts';
import { Batcher, type TokenAnswer } from './batcher.ts';
import { packs } from './packed.ts';
import { EpisodePacker } from './packer.ts';
import {
  crossing,
  crossingPolicy,
  type Fork,
  type InsideSpec,
  type PolicySpec,
  type RolloutEngine,
  type RolloutRequest,
  type RolloutSetup,
  worldSeed,
} from './rollouts.ts';
import { notOpened, SteppedEpisodes } from './stepped-episodes.ts';
import { strayedAt } from './told-again.ts';

/** A token policy as an episode meets it: by a name, and by asking. */
export interface Asking {
  readonly name: string;
  readonly version: number;
  ask(request: TokenRequest): Promise<TokenAnswer>;
}

export class RolloutRunner implements RolloutEngine {
  readonly #inside: Inside;
  readonly #host: WorldHost;
  /** For requests that want a fresh context, where that is not what the others get; made when it is first asked for. */
  #freshHost: WorldHost | undefined;
  readonly #stepped: SteppedEpisodes;
  /** Episodes that ask, begun and ended so far. */
  #begun = 0;
  #over = 0;
  readonly #hostOf: (reset: ResetLevel) => WorldHost;

  private constructor(inside: Inside, script: string) {
    this.#inside = inside;
    const { reset, memoryMiB, code } = inside.environment;
    this.#hostOf = (level) =>
      new WorldHost({ script, reset: level, memoryMiB, ...(code === undefined ? {} : { code }) });
    this.#host = this.#hostOf(reset);
    this.#stepped = new SteppedEpisodes(inside, this.#host, (request, policy, signal) =>
      this.#episode(request, policy, signal),
    );
  }

  /** @param script what `bundle` made of the world, where that has been done already. */
  static async create(setup: RolloutSetup, script?: string): Promise<RolloutRunner> {
    const environment = await importEnvironment(setup.environment);
    return new RolloutRunner(new Inside(environment, setup), script ?? (await bundle(environment.world)));
  }

  async run(
    requests: readonly RolloutRequest[],
    policy: PolicySpec,
    signal?: AbortSignal,
  ): Promise<readonly Episode[]> {
    const own = requests.map(crossing);
    if (policy.kind !== 'tokens') return this.act(own, crossingPolicy(policy), signal);
    const batcher = new Batcher(policy.policy, own, policy.schedule);
    const { name, version } = policy.policy;
    const asking: Asking = { name, version, ask: (request) => batcher.ask(request) };
    const each = own.map(async (request) => {
      await batcher.begun(request.id);
      const episode = await this.converse(request, asking, signal);
      batcher.end(episode.id, mayBeUsable(episode));
      return episode;
    });
    const [episodes] = await Promise.all([Promise.all(each), batcher.run()]);
    return episodes;
  }

  /** With a policy that acts in this thread. */
  async act(requests: readonly RolloutRequest[], spec: InsideSpec, signal?: StopSignal): Promise<Episode[]> {
    const episodes: Episode[] = [];
    await this.#act(requests, spec, signal, (episode) => episodes.push(episode));
    return episodes;
  }

  /** The same, packed as they come, for a policy that `packs`. */
  async actPacked(
    requests: readonly RolloutRequest[],
    spec: InsideSpec,
    signal?: StopSignal,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const packer = new EpisodePacker();
    await this.#act(requests, spec, signal, (episode) => packer.add(episode));
    return packer.finish();
  }

  async #act(
    requests: readonly RolloutRequest[],
    spec: InsideSpec,
    signal: StopSignal | undefined,
    each: (episode: Episode) => void,
  ): Promise<void> {
    const policy = this.#inside.policy(spec, requests);
    const { reset, code } = this.#inside.environment;
    // A world that is used again holds little, so that many can live at once.
    const together = reset === 'state' && code === undefined && packs(spec, requests);
    if (together && !requests.some(({ fresh }) => fresh)) return this.#stepped.run(requests, policy, signal, each);
    for (const [i, request] of requests.entries()) {
      each(await this.#episode(request, policy, signal));
      // An interrupt is an event, and events are served between turns only.
      if (i % 64 === 63) await nextTurn();
    }
  }

  /**
   * One episode that asks for its tokens, beside others.
   *
   * Their worlds share isolates, so one that uses up the memory ends its neighbours' too, and which those are depends on the number
   * of workers. A neighbour is told again what it was told, in a world of the same seed, and comes to what it would have come to.
   */
  async converse(request: RolloutRequest, asking: Asking, signal?: StopSignal): Promise<Episode> {
    const told: { readonly asked: TokenRequest; readonly answer: Promise<TokenAnswer> }[] = [];
    let strayed: string | undefined;
    const attempt = () => {
      let turn = 0;
      const ask = (asked: TokenRequest) => {
        const at = turn++;
        const before = told[at];
        if (before === undefined) {
          const answer = asking.ask(asked);
          told[at] = { asked, answer };
          return answer;
        }
        strayed = strayedAt(at, before.asked, asked);
        return strayed === undefined ? before.answer : Promise.reject(new Error(strayed));
      };
      return this.#episode(request, this.#askingPolicy(request, { ...asking, ask }), signal);
    };
    // Of those that live or have lived beside it.
    const beside = this.#begun - this.#over;
    const before = this.#begun++;
    try {
      let episode = await attempt();
      // Each death has an offender that it ends, so this ends too.
      for (let deaths = 1; episode.failure === 'died' && deaths < beside + this.#begun - before; deaths++) {
        episode = await attempt();
      }
      if (strayed === undefined) return episode;
      return failedEpisode(request, asking.name, 'sandbox-failure', strayed, 'died');
    } finally {
      this.#over++;
    }
  }

  async close(): Promise<void> {
    this.#host.dispose();
    this.#freshHost?.dispose();
  }

  async #episode(request: RolloutRequest, policy: Policy, signal: StopSignal | undefined): Promise<Episode> {
    if (signal?.aborted) return failedEpisode(request, policy.name, 'cancelled', 'it had not begun');
    // Rollouts of one task share it: a script that changed it would change what its siblings are begun with.
    frozen(request.task.public);
    let world: WorldSession;
    try {
      const seed = request.fork === undefined ? request.seed : worldSeed(request.fork.parent);
      world = this.#hostFor(request).open(JSON.stringify(request.task.public), deriveSeed(seed, 'world'));
    } catch (error) {
      return notOpened(request, policy.name, error);
    }
    try {
      const { environment, format, tokenizer } = this.#inside;
      const stop = signal === undefined ? {} : { signal };
      const { fork } = request;
      const acting = fork === undefined ? policy : actingIn(fork, policy);
      const episode = await runEpisode({ request, environment, format, world, policy: acting, tokenizer, ...stop });
      const strayed = fork && strayedFrom(fork, episode);
      if (strayed === undefined) return episode;
      return failedEpisode(request, policy.name, 'environment-failure', strayed);
    } finally {
      world.close();
    }
  }

  #hostFor({ fresh }: RolloutRequest): WorldHost {
    if (fresh !== true || this.#inside.environment.reset !== 'state') return this.#host;
    this.#freshHost ??= this.#hostOf('context');
    return this.#freshHost;
  }

  #askingPolicy(request: RolloutRequest, { name, version, ask }: Asking): Policy {
    const { tokenizer, format } = this.#inside;
    // One that goes on draws from where it stands, not again what it has drawn.
    const drawn = request.fork?.goesOn === true && request.fork.step > 0 ? [request.fork.step] : [];
    const seed = deriveSeed(request.seed, 'policy', ...drawn);
    return {
      name,
      version,
      tokens: 'text',
      async request({ episodeId, ids, newFrom, maxTokens, steps }) {
        const reply = await ask({ episodeId, newIds: ids.slice(newFrom), maxTokens, seed });
        if ('halt' in reply) throw new Halted(reply);
        return replyInTokens(reply, steps, tokenizer, format);
      },
    };
  }
}

function actingIn({ parent, step, goesOn }: Fork, policy: Policy): Policy {
  return goesOn === true ? continuedPolicy(policy, parent) : forkedPolicy(policy, parent, step);
}

/** Why a fork is none: its world did not come to what its parent's had come to. */
function strayedFrom({ parent, step }: Fork, { steps }: Episode): string | undefined {
  const told = ({ calls }: Step) => JSON.stringify(calls);
  for (let i = 0; i < Math.min(step, steps.length); i++) {
    const [was, is] = [parent.steps[i], steps[i]];
    if (was === undefined || is === undefined || told(was) === told(is)) continue;
    return `what goes on from ${parent.id} did not come to the same in step ${i + 1}: expected ${told(was)}, found ${told(is)}`;
  }
  return undefined;
}
