/** @module What a run came to: the object that `--json` prints and `summary.json` holds. */
import type { Backend, BackendName } from '../policy/backends/select.ts';
import { deriveSeed } from '../records/random.ts';
import type { Trajectory } from '../records/trajectory.ts';
import type { Config } from './config.ts';
import { type Evaluation, type EvaluationMode, type PolicyName, type PolicyRow, pairedGain } from './evaluate.ts';
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

/** One policy on the held-out tasks, in both modes, and its row in the table. */
export interface Evaluated {
  readonly name: PolicyName;
  readonly greedy: Evaluation;
  readonly sampled: Evaluation;
  readonly row: PolicyRow;
}

/** @param o.before the policy that reinforcement began with: the gain is that of `o.trained` over it */
export function summarize(o: {
  readonly run: string;
  readonly backend: Pick<Backend, 'name' | 'device'>;
  readonly config: Pick<Config, 'seed' | 'iterations'>;
  readonly evaluated: readonly Evaluated[];
  readonly before: Evaluated;
  readonly trained: Evaluated;
  readonly wallSeconds: number;
}): Summary {
  const { run, backend, before, trained, wallSeconds } = o;
  const { seed, iterations } = o.config;
  const gain = (mode: EvaluationMode) => pairedGain(before[mode], trained[mode], deriveSeed(String(seed), mode));
  return {
    run,
    backend: backend.name,
    device: backend.device,
    seed,
    iterations,
    wallSeconds,
    policies: o.evaluated.map(({ row }) => row),
    gain: { over: before.name, success: gain('greedy'), sampledSuccess: gain('sampled') },
  };
}
