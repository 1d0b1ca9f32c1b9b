/** @module The seam between training and the rollouts: what is asked of an engine and what it gives. A pool of workers is one engine, the calling thread another. */

import { stepsToGoOnAfter } from '../../policy/recorded.ts';
import type { TokenPolicy } from '../../policy/token-policy.ts';
import { inputError } from '../../records/errors.ts';
import { frozen, isDeeper, type Json, jsonText, MAX_DEPTH, MAX_LEVELS } from '../../records/json.ts';
import type { PublicTask } from '../../records/task.ts';
import { type Episode, episodeOf } from '../../records/trajectory.ts';
import type { Isolation, ResetLevel } from '../environment.ts';
import type { Schedule } from './schedule.ts';

/** Where a rollout begins, if not at the beginning. */
export interface Fork {
  /** Of the same task. */
  readonly parent: Episode;
  /** How many of its actions are taken again, in a world of its seed, before the policy is asked for the next one. */
  readonly step: number;
  /** True: it is the parent itself that goes on, its actions its own as they were sampled, and no other episode. */
  readonly goesOn?: boolean;
}

export interface RolloutRequest {
  readonly id: string;
  readonly group: string;
  readonly task: PublicTask;
  readonly iteration: number;
  readonly rollout: number;
  readonly seed: string;
  readonly fork?: Fork;
  /** True: in a fresh context, also where the reset level is `state`. */
  readonly fresh?: boolean;
}

/** What the world of an episode is seeded with: a fork's is that of the episode where it all began, so that it goes on as that one would have. */
export function worldSeed(episode: Pick<Episode, 'seed' | 'forkedFrom'>): string {
  return episode.forkedFrom?.seed ?? episode.seed;
}

/** What the record of a fork says of its parent. */
export function forkedFrom({ fork }: Pick<RolloutRequest, 'fork'>): Episode['forkedFrom'] {
  if (fork === undefined || fork.goesOn === true) return undefined;
  return { episode: fork.parent.id, step: fork.step, seed: worldSeed(fork.parent) };
}

/**
 * A copy with what may cross to a worker. Whatever else the objects carry at run time stays behind, above all what is held.
 * @throws FORK_STEP where the parent has another task or no such step to go on after; TOO_DEEP
 */
export function crossing(request: RolloutRequest): RolloutRequest {
  const { id, group, task, iteration, rollout, seed, fork, fresh = false } = request;
  if (fork !== undefined) checkFork(fork, task.id);
  const own = {
    id: task.id,
    prompt: task.prompt,
    public: crossable(task.public, `task ${task.id}: public`, MAX_DEPTH),
  };
  const from = fork && { fork: { ...fork, parent: crossingEpisode(fork.parent) } };
  return { id, group, task: own, iteration, rollout, seed, fresh, ...from };
}

/** The same of a policy: of records the episodes alone. @throws TOO_DEEP */
export function crossingPolicy<P extends PolicySpec>(policy: P): P {
  return policy.kind === 'recorded' ? { ...policy, episodes: policy.episodes.map(crossingEpisode) } : policy;
}

function crossingEpisode(record: Episode): Episode {
  return crossable(episodeOf(record), `episode ${record.id}`, MAX_LEVELS);
}

/** What is written, copied or hashed on its way must not overflow the stack there. What is frozen already has been looked at. */
function crossable<T>(value: T, what: string, levels: number): T {
  if (Object.isFrozen(value) || !isDeeper(value, levels)) return value;
  throw inputError(
    'TOO_DEEP',
    `${what}: expected at most ${levels} levels of objects and arrays, found more`,
    'Make it flatter: whatever was made by isogym keeps within them.',
  );
}

function checkFork({ parent, step }: Fork, taskId: string): void {
  if (parent.taskId !== taskId) {
    throw inputError('FORK_STEP', `expected a fork of an episode of task ${taskId}, found one of ${parent.taskId}`);
  }
  const last = stepsToGoOnAfter(parent);
  if (Number.isInteger(step) && step >= 0 && step <= last) return;
  throw inputError(
    'FORK_STEP',
    `expected a step of episode ${parent.id} from 0 to ${last} to fork it at, found ${step}`,
  );
}

/** The requests as JSON: lists without the names of their places, each task's public part written once however many rollouts it has. */
export function writeRequests(requests: readonly RolloutRequest[]): string {
  const written = requests.map(({ id, group, task, iteration, rollout, seed, fork, fresh }) => {
    const own = [id, group, task.id, task.prompt, iteration, rollout, seed, fork, fresh];
    return `${JSON.stringify(own).slice(0, -1)},${jsonText(frozen(task.public))}]`;
  });
  return `[${written.join(',')}]`;
}

export function readRequests(text: string): readonly RolloutRequest[] {
  return (JSON.parse(text) as readonly Written[]).map((written) => {
    const [id, group, taskId, prompt, iteration, rollout, seed, fork, fresh, open] = written;
    const task = { id: taskId, prompt, public: open };
    const request = { id, group, task, iteration, rollout, seed };
    return { ...request, ...(fork !== null && { fork }), ...(fresh !== null && { fresh }) };
  });
}

/** Absent members are null. */
type Written = readonly [
  id: string,
  group: string,
  taskId: string,
  prompt: string,
  iteration: number,
  rollout: number,
  seed: string,
  fork: Fork | null,
  fresh: boolean | null,
  open: Json,
];

/**
 * - `scripted`: one of the environment's scripts.
 * - `uniform`: uniform over the tokens that the grammar allows.
 * - `tabular`: softmax over `table` [states × actions], row-major; `greedy` takes the first largest.
 * - `texts`: these texts, one after another, each as a policy could write it; it fails where they end.
 * - `recorded`: what the policy `name` did in these records, again: see `recordedPolicy`.
 * - `tokens`: a batched policy outside the workers.
 * All but the last act inside the workers.
 */
export type PolicySpec =
  | { readonly kind: 'scripted'; readonly script: string }
  | { readonly kind: 'uniform' }
  | {
      readonly kind: 'tabular';
      readonly table: Float32Array;
      readonly version: number;
      readonly temperature: number;
      readonly greedy: boolean;
    }
  | { readonly kind: 'texts'; readonly texts: readonly string[] }
  | { readonly kind: 'recorded'; readonly name: string; readonly episodes: readonly Episode[] }
  | TokenSpec;

export interface TokenSpec {
  readonly kind: 'tokens';
  readonly policy: TokenPolicy;
  /** Who is in its batch when. */
  readonly schedule?: Schedule;
}

/** The policies that act inside the workers. */
export type InsideSpec = Exclude<PolicySpec, { readonly kind: 'tokens' }>;

/** What an engine is started with: plain data that crosses to a worker. */
export interface RolloutSetup {
  /** Absolute URL of the module whose default export is the environment. */
  readonly environment: string;
  /** The environment's options, resolved. */
  readonly options: unknown;
  /** Overrides of the environment's own values. */
  readonly maxSteps?: number;
  readonly reset?: ResetLevel;
  readonly isolation?: Isolation;
}

/** Told of episodes as soon as they have ended, in any order; of one that is run again, again. */
export type Ended = (episodes: readonly Episode[]) => void;

export interface RolloutEngine {
  /**
   * Episodes in the order of the requests, each one present: a failure is an episode with a failing stop reason.
   * @param ended for those who go on with the first while others still run. Those that the run gives may be others in the end,
   * where all had to be run again.
   */
  run(
    requests: readonly RolloutRequest[],
    policy: PolicySpec,
    signal?: AbortSignal,
    ended?: Ended,
  ): Promise<readonly Episode[]>;
  /**
   * Whether reset level `state` was declared and has turned out not to be earned: fresh contexts ever since. Set where a run goes on
   * after that, or where what has lost it is no part of the run yet. Absent where no level is tried.
   */
  resetLost?: boolean;
  close(): Promise<void>;
}
