/**
 * @module The episode loop in one thread, with its world called directly and with its world sealed: what sealing costs, and
 * which share of an episode is the policy's, the tools' and the orchestration's. The clock is an argument.
 */
import type { CreateWorld, Environment, ResetLevel } from '../env/environment.ts';
import { runEpisode } from '../env/episode.ts';
import { Inside } from '../env/inside.ts';
import type { InsideSpec, RolloutRequest } from '../env/rollouts/rollouts.ts';
import { SteppedEpisodes, type SteppedHost } from '../env/rollouts/stepped-episodes.ts';
import { bundle } from '../env/sandbox/bundle.ts';
import { WorldHost, type WorldSession } from '../env/sandbox/world-host.ts';
import type { Policy } from '../policy/policy.ts';
import type { Json } from '../records/json.ts';
import { deriveSeed, generator } from '../records/random.ts';
import type { Task } from '../records/task.ts';
import type { Episode, Trajectory } from '../records/trajectory.ts';
import { groupRequests, verifierInput } from '../train/collect.ts';
import { judge } from '../train/returns.ts';
import { median } from '../train/statistics.ts';
import type { Verifier, Verify } from '../verifiers/verifier.ts';

/** What one pass over the tasks took [ms]. `policyMs`, `toolMs` are parts of a third, timed run, `timedMs` in all. */
export interface LoopPass {
  readonly episodes: readonly Trajectory[];
  /** With the verifier, its code called directly too. */
  readonly unsealedMs: number;
  /** Time computed in it. */
  readonly unsealedCpuMs: number;
  readonly directMs: number;
  readonly sealedMs: number;
  readonly timedMs: number;
  readonly policyMs: number;
  readonly toolMs: number;
}

/** Medians over the passes, for one step [µs], and shares of a sealed episode, no crossing to a worker included. */
export interface LoopFigures {
  readonly policy: string;
  readonly steps: number;
  readonly directUsPerStep: number;
  readonly sealedUsPerStep: number;
  /** Median of the differences within a pass. */
  readonly sealingUsPerStep: number;
  readonly orchestrationUsPerStep: number;
  readonly share: { readonly policy: number; readonly tool: number; readonly orchestration: number };
}

export class LoopBench {
  readonly #inside: Inside;
  readonly #host: WorldHost;
  readonly #create: CreateWorld;
  readonly #verify: Verify;
  readonly #verifier: Verifier;
  readonly #now: () => number;
  readonly #cpuMs: () => number;

  private constructor(
    inside: Inside,
    host: WorldHost,
    create: CreateWorld,
    verify: Verify,
    verifier: Verifier,
    o: { readonly now: () => number; readonly cpuMs: () => number },
  ) {
    this.#inside = inside;
    this.#host = host;
    this.#create = create;
    this.#verify = verify;
    this.#verifier = verifier;
    this.#now = o.now;
    this.#cpuMs = o.cpuMs;
  }

  /** Undefined where code that a policy wrote is run: that is never called directly. */
  static async create(
    environment: Environment,
    verifier: Verifier,
    o: {
      readonly maxSteps: number | undefined;
      readonly reset: ResetLevel;
      readonly now: () => number;
      readonly cpuMs: () => number;
    },
  ): Promise<LoopBench | undefined> {
    if (environment.code !== undefined || verifier.code !== undefined) return undefined;
    const inside = new Inside(environment, {
      reset: o.reset,
      ...(o.maxSteps === undefined ? {} : { maxSteps: o.maxSteps }),
    });
    const { memoryMiB, world } = environment;
    const sealed = new WorldHost({ script: await bundle(world), reset: o.reset, memoryMiB });
    const { default: create } = (await import(world.href)) as { readonly default: CreateWorld };
    const { default: verify } = (await import(verifier.source.href)) as { readonly default: Verify };
    return new LoopBench(inside, sealed, create, verify, verifier, o);
  }

  /** @throws what a policy throws that does not suit the environment */
  check(spec: InsideSpec): void {
    this.#inside.policy(spec, []);
  }

  /** Each of the three ways over all tasks, one after the other. */
  async pass(spec: InsideSpec, tasks: readonly Task[], seed: string): Promise<LoopPass> {
    const now = this.#now;
    const requests = groupRequests(tasks, 1, seed, 0);
    const policy = this.#inside.policy(spec, requests);
    const cpu = this.#cpuMs();
    const start = now();
    const direct: Episode[] = [];
    for (const request of requests)
      direct.push(await this.#episode(request, policy, directWorld(this.#create, request)));
    const begun = now();
    const episodes = direct.map((episode, i) => this.#judged(episode, tasks[i] as Task));
    const judged = now();
    const unsealedCpuMs = this.#cpuMs() - cpu;
    await this.#sealedEpisodes(requests, policy, this.#host);
    const sealed = now();
    const spent = { policyMs: 0, toolMs: 0 };
    await this.#sealedEpisodes(requests, timed(policy, spent, now), timedHost(this.#host, spent, now));
    const timedMs = now() - sealed;
    return {
      episodes,
      unsealedMs: judged - start,
      unsealedCpuMs,
      directMs: begun - start,
      sealedMs: sealed - judged,
      timedMs,
      ...spent,
    };
  }

  /** One episode with no sandbox, judged. */
  async one(spec: InsideSpec, task: Task, seed: string): Promise<Trajectory> {
    const [request] = groupRequests([task], 1, seed, 0) as [RolloutRequest];
    const episode = await this.#episode(
      request,
      this.#inside.policy(spec, [request]),
      directWorld(this.#create, request),
    );
    return this.#judged(episode, task);
  }

  close(): void {
    this.#host.dispose();
  }

  async #episode(request: RolloutRequest, policy: Policy, world: WorldSession): Promise<Episode> {
    const { environment, format, tokenizer } = this.#inside;
    try {
      return await runEpisode({ request, environment, format, world, policy, tokenizer });
    } finally {
      world.close();
    }
  }

  /** As a worker runs them: together where the reset level lets them be, else one after another. */
  async #sealedEpisodes(requests: readonly RolloutRequest[], policy: Policy, host: SealedHost): Promise<void> {
    const alone = (request: RolloutRequest) =>
      this.#episode(request, policy, host.open(JSON.stringify(request.task.public), deriveSeed(request.seed, 'world')));
    if (this.#inside.environment.reset === 'state') {
      await new SteppedEpisodes(this.#inside, host, alone).run(requests, policy, undefined, () => {});
    } else for (const request of requests) await alone(request);
  }

  #judged(episode: Episode, task: Task): Trajectory {
    const runCode = () => [];
    const { score, reasons = [] } = this.#verify(verifierInput(episode, task), { runCode });
    const success = score >= this.#verifier.success && episode.stop === 'final';
    return judge(episode, { score, success, reasons }, 0.05);
  }
}

/** JSON in, as the sealed one gets it, and the same function called. */
function directWorld(create: CreateWorld, { task, seed }: RolloutRequest): WorldSession {
  const random = generator(deriveSeed(seed, 'world'));
  const { tools } = create({ public: JSON.parse(JSON.stringify(task.public)) as Json, random, runCode: () => [] });
  return {
    call(tool, argsJson) {
      const text = (tools[tool] as (args: Json) => string)(JSON.parse(argsJson) as Json);
      return { status: 'ok', text };
    },
    close() {},
  };
}

interface Spent {
  policyMs: number;
  toolMs: number;
}

function timed(policy: Policy, spent: Spent, now: () => number): Policy {
  return {
    ...policy,
    request(context) {
      const start = now();
      const reply = policy.request(context);
      spent.policyMs += now() - start;
      return reply;
    },
  };
}

type SealedHost = SteppedHost & Pick<WorldHost, 'open'>;

function timedHost(host: WorldHost, spent: Spent, now: () => number): SealedHost {
  const inTime = <T>(run: () => T): T => {
    const start = now();
    try {
      return run();
    } finally {
      spent.toolMs += now() - start;
    }
  };
  return {
    take: () => inTime(() => host.take()),
    opening: (realm, publicJson, seed) => host.opening(realm, publicJson, seed),
    runAll: (operations) => inTime(() => host.runAll(operations)),
    failureOf: (outcome) => host.failureOf(outcome),
    give: (realm, usable) => inTime(() => host.give(realm, usable)),
    forget: () => inTime(() => host.forget()),
    open(publicJson, seed) {
      const world = inTime(() => host.open(publicJson, seed));
      return {
        call: (tool, argsJson, timeoutMs) => inTime(() => world.call(tool, argsJson, timeoutMs)),
        stateHash: () => world.stateHash(),
        fork: () => world.fork(),
        close: () => world.close(),
      };
    },
  };
}

export function loopFigures(policy: string, passes: readonly LoopPass[]): LoopFigures {
  const steps = (passes[0]?.episodes ?? []).reduce((sum, episode) => sum + episode.steps.length, 0);
  const perStep = (of: (pass: LoopPass) => number) => (1000 * median(passes.map(of))) / steps;
  const share = (of: (pass: LoopPass) => number) => median(passes.map((pass) => of(pass) / pass.timedMs));
  const orchestration = ({ timedMs, policyMs, toolMs }: LoopPass) => timedMs - policyMs - toolMs;
  return {
    policy,
    steps: steps / (passes[0]?.episodes.length ?? 1),
    directUsPerStep: perStep((pass) => pass.directMs),
    sealedUsPerStep: perStep((pass) => pass.sealedMs),
    sealingUsPerStep: perStep((pass) => pass.sealedMs - pass.directMs),
    orchestrationUsPerStep: perStep(orchestration),
    share: {
      policy: share(({ policyMs }) => policyMs),
      tool: share(({ toolMs }) => toolMs),
      orchestration: share(orchestration),
    },
  };
}
