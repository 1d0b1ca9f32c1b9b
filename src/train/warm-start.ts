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
import type { Reporter } from './reporter.ts';
import type { OpenRig, Where } from './rig.ts';
import { learningRate } from './schedule.ts';
import { drawOfStep } from './task-set.ts';
import { usableOnly } from './usable.ts';

type WarmStart = NonNullable<Config['warmStart']>;

/**
 * `demonstrations` episodes, each script its share of them (rounded down, the last script taking the rest), on tasks drawn without
 * replacement until all have been drawn. Which tasks a script gets follows from the order in which the environment declares its
 * scripts: the order of the mixture's keys says nothing. They are run in the sandbox and judged like any other episode.
 * @param o.note told where some cannot be learnt from
 * @throws NO_USABLE_ROLLOUT where a script shows nothing that can be learnt from: its share would be missing
 */
export async function demonstrate(
  warmStart: WarmStart,
  rig: Rig & Pick<OpenRig, 'environment'>,
  tasks: readonly Task[],
  seed: string,
  { signal, note }: { readonly signal?: AbortSignal } & Partial<Pick<Reporter, 'note'>> = {},
): Promise<readonly Trajectory[]> {
  const names = Object.keys(rig.environment.scripts).filter((name) => (warmStart.mixture[name] ?? 0) > 0);
  const drawn = drawOfStep(tasks, deriveSeed(seed, 'demonstrations'), 0, warmStart.demonstrations);
  const requests = groupRequests(drawn, 1, deriveSeed(seed, 'demonstrations'), 0);
  const out: Trajectory[] = [];
  let from = 0;
  for (const [i, script] of names.entries()) {
    const share = Math.floor((warmStart.mixture[script] ?? 0) * requests.length);
    const to = i === names.length - 1 ? requests.length : from + share;
    const shown = await collect(rig, requests.slice(from, to), tasks, { kind: 'scripted', script }, signal);
    if (shown.length > 0) usableOnly(shown);
    out.push(...shown);
    from = to;
  }
  const unusable = out.filter((trajectory) => !trajectory.usable).length;
  if (unusable > 0) {
    note?.(
      `${unusable} of ${out.length} demonstrations are not usable and teach nothing: the mixture is not quite the config's`,
    );
  }
  return shuffled(out, generator(deriveSeed(seed, 'demonstrations', 'order')));
}

/** Whether the environment has every script of the mixture. @throws UNKNOWN_SCRIPT */
export function checkScripts({ mixture }: WarmStart, scripts: readonly string[], where?: Where): void {
  const unknown = Object.keys(mixture).filter((name) => !scripts.includes(name));
  if (unknown.length === 0) return;
  const expected = scripts.length === 0 ? 'no script, as the environment has none' : `one of ${scripts.join(', ')}`;
  const lines = unknown.map((name) => {
    const place = where?.(['warmStart', 'mixture', name], 'key');
    const near = nearest(name, scripts);
    const guess = near === undefined ? '' : ` (did you mean ${near}?)`;
    return `${place === undefined ? '' : `${place} `}warmStart.mixture.${name}: expected ${expected}, found ${name}${guess}`;
  });
  throw inputError('UNKNOWN_SCRIPT', lines.join('\n'), "The environment's own module declares its scripts.");
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
  readonly commit: (step: number, update: UpdateStatistics) => Promise<void>;
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
    await commit(step, await learner.supervise(batch, learningRate(step, schedule)));
  }
}
