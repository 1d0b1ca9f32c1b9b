/** @module What a run came to: the object that `--json` prints and `summary.json` holds. */
import type { BackendName } from '../policy/backends/select.ts';
import type { Trajectory } from '../records/trajectory.ts';
import type { PolicyName, PolicyRow } from './evaluate.ts';
import type { Interval } from './statistics.ts';

export interface Summary {
  /** The run folder's path, as it can be given to `isogym show`. */
  readonly run: string;
  readonly backend: BackendName;
  readonly device: string;
  readonly seed: number;
  readonly iterations: number;
  /** Of this process, start-up included; a resumed run counts from its resumption. */
  readonly wallSeconds: number;
  readonly policies: readonly PolicyRow[];
  /** What reinforcement added on the same held-out tasks: success of `trained` less success of `over`, paired by task. */
  readonly gain: { readonly over: PolicyName; readonly success: Interval; readonly sampledSuccess: Interval };
}

/** One held-out task, before and after reinforcement, greedy. */
export interface Example {
  readonly before: Trajectory;
  readonly after: Trajectory;
}

/** What an interrupted run prints instead. */
export interface Interruption {
  readonly run: string;
  readonly interrupted: true;
  /** Iterations that are finished. */
  readonly iterations: number;
  /** The command that goes on with it. */
  readonly resume: string;
}
