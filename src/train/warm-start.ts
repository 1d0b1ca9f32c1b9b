/** @module The warm start: scripted demonstrations of mixed quality, then supervised steps on them. It teaches the tokens and not the behaviour. */
import { inputError } from '../records/errors.ts';
import { nearest } from '../records/nearest.ts';
import { deriveSeed, generator, shuffled } from '../records/random.ts';
import type { Task } from '../records/task.ts';
import type { Trajectory } from '../records/trajectory.ts';
import type { Agent } from './agent.ts';
import { packBatch } from './batch.ts';
import { collect, groupRequests, type Rig } from './collect.ts';
import type { Config } from './config.ts';
import type { Learner, UpdateStatistics } from './learner.ts';
import { learningRate } from './schedule.ts';
import { drawOfStep } from './task-set.ts';

type WarmStart = NonNullable<Config['warmStart']>;

/**
 * `demonstrations` episodes, each script its share of them (rounded down, the last script taking the rest), on tasks drawn without
 * replacement until all have been drawn. They are run in the sandbox and judged like any other episode.
 * @throws UNKNOWN_SCRIPT
 */
export async function demonstrate(
  warmStart: WarmStart,
  rig: Rig,
  tasks: readonly Task[],
  scripts: readonly string[],
  seed: string,
  signal?: AbortSignal,
): Promise<readonly Trajectory[]> {
  const names = Object.keys(warmStart.mixture);
  for (const name of names) {
    if (!scripts.includes(name)) throw unknownScript(name, scripts);
  }
  const drawn = drawOfStep(tasks, deriveSeed(seed, 'demonstrations'), 0, warmStart.demonstrations);
  const requests = groupRequests(drawn, 1, deriveSeed(seed, 'demonstrations'), 0);
  const out: Trajectory[] = [];
  let from = 0;
  for (const [i, script] of names.entries()) {
    const share = Math.floor((warmStart.mixture[script] ?? 0) * requests.length);
    const to = i === names.length - 1 ? requests.length : from + share;
    out.push(...(await collect(rig, requests.slice(from, to), tasks, { kind: 'scripted', script }, signal)));
    from = to;
  }
  return shuffled(out, generator(deriveSeed(seed, 'demonstrations', 'order')));
}

export interface WarmStartOptions {
  readonly config: WarmStart;
  readonly agent: Agent;
  readonly learner: Learner;
  readonly demonstrations: readonly Trajectory[];
  readonly seed: string;
  /** The first step to do. */
  readonly from: number;
  readonly signal?: AbortSignal;
  readonly commit: (step: number, update: UpdateStatistics) => void;
}

/** `steps` supervised optimizer steps. What a step does follows from its number: it can be gone on with anywhere. */
export async function warmStart(options: WarmStartOptions): Promise<void> {
  const { config, agent, learner, demonstrations, seed, from, signal, commit } = options;
  const schedule = { peak: config.learningRate, steps: config.steps, warmup: 0, decay: config.decay };
  for (let step = from; step < config.steps; step++) {
    // Ctrl-C and the terminal get their turn.
    await new Promise(setImmediate);
    signal?.throwIfAborted();
    const trajectories = drawOfStep(demonstrations, deriveSeed(seed, 'warm-start'), step, config.episodes);
    const batch = packBatch({ trajectories, advantages: 'supervised', denominator: 'tokens', ...agent.packing });
    commit(step, await learner.supervise(batch, learningRate(step, schedule)));
  }
}

function unknownScript(name: string, scripts: readonly string[]): Error {
  const near = nearest(name, scripts);
  return inputError(
    'UNKNOWN_SCRIPT',
    `warmStart.mixture: expected scripts of the environment (${scripts.join(', ')}), found ${name}${near ? ` (did you mean ${near}?)` : ''}`,
  );
}
