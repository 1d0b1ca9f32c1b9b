/** @module An environment on trial: its tasks, worlds, calls and episodes, in this thread. What the author's own code does outside the isolates is bounded in time. */
import { bounded } from '../env/bounded.ts';
import type { Environment, ResetLevel } from '../env/environment.ts';
import { runEpisode } from '../env/episode.ts';
import { Inside } from '../env/inside.ts';
import { finishCall, ToolRegistry } from '../env/registry.ts';
import type { InsideSpec, RolloutRequest } from '../env/rollouts/rollouts.ts';
import { type ForkableWorld, WorldFailure, WorldHost, type WorldSession } from '../env/sandbox/world-host.ts';
import { failedEpisode } from '../env/transcript.ts';
import type { ToolCall } from '../records/action.ts';
import { messageOf } from '../records/errors.ts';
import type { JsonObject } from '../records/json.ts';
import { deriveSeed } from '../records/random.ts';
import { publicPart, type Task } from '../records/task.ts';
import type { CallRecord, Episode } from '../records/trajectory.ts';

/** For one call of a script or of a tabular view. */
const SCRIPT_TIMEOUT_MS = 5000;

/** A call as a check makes it. */
export interface Call {
  readonly tool: string;
  readonly arguments: JsonObject;
}

export class Trial {
  readonly environment: Environment;
  readonly inside: Inside;
  readonly tasks: readonly Task[];
  readonly seed: string;
  readonly #script: string;
  readonly #hosts = new Set<WorldHost>();

  /** @param script what `bundle` made of the world. @throws INVALID_FORMAT where tools and format do not suit each other */
  constructor(environment: Environment, script: string, tasks: readonly Task[], seed: string) {
    this.environment = inTime(environment);
    this.inside = new Inside(this.environment, {});
    this.tasks = tasks;
    this.seed = seed;
    this.#script = script;
  }

  /** Worlds of a level of their own; nothing has happened in them yet. */
  host(reset: ResetLevel = this.environment.reset): WorldHost {
    const { memoryMiB, code } = this.environment;
    const host = new WorldHost({ script: this.#script, reset, memoryMiB, ...(code === undefined ? {} : { code }) });
    this.#hosts.add(host);
    return host;
  }

  /** @throws WorldFailure */
  open(host: WorldHost, task: Task, seed = this.seed): ForkableWorld {
    return host.open(JSON.stringify(task.public), deriveSeed(seed, task.id, 'world'));
  }

  /** The records of calls in one world, one after the other. */
  caller(world: WorldSession, task: Task): (call: ToolCall) => CallRecord {
    const registry = new ToolRegistry(this.environment.tools, publicPart(task));
    return (call) => finishCall(registry.call(call), world);
  }

  /** The calls, one after the other, in a world of their own. @throws WorldFailure */
  play(host: WorldHost, task: Task, calls: readonly Call[], seed = this.seed): readonly CallRecord[] {
    const world = this.open(host, task, seed);
    const run = this.caller(world, task);
    const records = calls.map((call, i) => run(written(call, i)));
    world.close();
    return records;
  }

  /** One episode; `seed` is that of its world and of its policy. Never throws: what fails is its stop reason. */
  async episode(host: WorldHost, task: Task, spec: InsideSpec, seed = this.seed): Promise<Episode> {
    const id = `check.${task.id}`;
    const request: RolloutRequest = {
      id,
      group: id,
      task: publicPart(task),
      iteration: 0,
      rollout: 0,
      seed: deriveSeed(seed, task.id),
    };
    const { environment, format, tokenizer } = this.inside;
    const policy = this.inside.policy(spec, [request]);
    let world: WorldSession;
    try {
      world = this.open(host, task, seed);
    } catch (error) {
      return failedEpisode(
        request,
        policy.name,
        'environment-failure',
        messageOf(error),
        error instanceof WorldFailure ? error.failure : undefined,
      );
    }
    const episode = await runEpisode({ request, environment, format, world, policy, tokenizer });
    world.close();
    return episode;
  }

  /** Episodes of all tasks under one policy. */
  async episodes(spec: InsideSpec, seed = this.seed): Promise<readonly Episode[]> {
    const host = this.host();
    const episodes: Episode[] = [];
    for (const task of this.tasks) episodes.push(await this.episode(host, task, spec, seed));
    return episodes;
  }

  dispose(): void {
    for (const host of this.#hosts) host.dispose();
  }
}

/** A call as a policy would have written it. */
export function written({ tool, arguments: args }: Call, index: number): Parameters<ToolRegistry['call']>[0] {
  return { id: `call-${index + 1}`, name: tool, arguments: args, raw: JSON.stringify(args) };
}

/** The environment with a bound on each call of its scripts and its tabular view. */
function inTime(environment: Environment): Environment {
  const { scripts, tabular } = environment;
  return {
    ...environment,
    scripts: Object.fromEntries(
      Object.entries(scripts).map(([name, script]) => [name, (view) => bounded(() => script(view), SCRIPT_TIMEOUT_MS)]),
    ),
    ...(tabular === undefined
      ? {}
      : {
          tabular: {
            ...tabular,
            observe: (view) => bounded(() => tabular.observe(view), SCRIPT_TIMEOUT_MS),
            act: (action, view) => bounded(() => tabular.act(action, view), SCRIPT_TIMEOUT_MS),
          },
        }),
  };
}
