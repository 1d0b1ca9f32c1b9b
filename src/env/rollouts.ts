/** @module The seam between training and the rollouts: what is asked of an engine and what it gives. A pool of workers is one engine, the calling thread another. */

import type { TokenPolicy } from '../policy/token-policy.ts';
import type { PublicTask } from '../records/task.ts';
import type { Episode } from '../records/trajectory.ts';
import type { Isolation, ResetLevel } from './environment.ts';

export interface RolloutRequest {
  readonly id: string;
  readonly group: string;
  readonly task: PublicTask;
  readonly iteration: number;
  readonly rollout: number;
  readonly seed: string;
}

/** A copy with what may cross to a worker. Whatever else the objects carry at run time stays behind, above all what is held. */
export function crossing({ id, group, task, iteration, rollout, seed }: RolloutRequest): RolloutRequest {
  return { id, group, task: { id: task.id, prompt: task.prompt, public: task.public }, iteration, rollout, seed };
}

/**
 * - `scripted`: one of the environment's scripts.
 * - `uniform`: uniform over the tokens that the grammar allows.
 * - `tabular`: softmax over `table` [states × actions], row-major; `greedy` takes the first largest.
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
  | { readonly kind: 'recorded'; readonly name: string; readonly episodes: readonly Episode[] }
  | { readonly kind: 'tokens'; readonly policy: TokenPolicy };

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

export interface RolloutEngine {
  /** Episodes in the order of the requests, each one present: a failure is an episode with a failing stop reason. */
  run(requests: readonly RolloutRequest[], policy: PolicySpec, signal?: AbortSignal): Promise<readonly Episode[]>;
  close(): Promise<void>;
}
