/** @module What a run and its learner's process say to each other; both are this program, so nothing in it is checked. Calls are done one by one, in order. */
import type { BackendName } from '../../policy/backends/select.ts';
import type { Weights } from '../../policy/model.ts';
import type { ModelSpec } from '../../policy/models.ts';
import type { StepsSnapshot, StepsStart, UpdateOptions, UpdateStatistics } from '../steps.ts';

/** What the process steps, and on what. */
export interface RemoteModel {
  readonly spec: ModelSpec;
  readonly backend: BackendName;
  /** Whether steps are recorded and replayed as graphs. */
  readonly replay: boolean;
}

/** What can be asked for, and what is answered. */
export interface Calls {
  readonly begin: { readonly of: { readonly model: RemoteModel; readonly start: StepsStart }; readonly gives: null };
  readonly update: {
    readonly of: UpdateOptions;
    readonly gives: { readonly statistics: UpdateStatistics; readonly weights: Weights };
  };
  readonly forget: { readonly of: null; readonly gives: null };
  readonly anchor: { readonly of: null; readonly gives: null };
  readonly snapshot: { readonly of: null; readonly gives: StepsSnapshot };
}
export type CallName = keyof Calls;

export interface ToLearner<Name extends CallName = CallName> {
  readonly call: Name;
  readonly of: Calls[Name]['of'];
}

/** The answer to the first call that has none yet. */
export type FromLearner =
  | {
      readonly gives: Calls[CallName]['gives'];
      /** Shapes that it has recorded. */
      readonly recordings: number;
      /** Tensor handles that TensorFlow's addon has given out there; null on other backends. */
      readonly tensorHandles: number | null;
    }
  | { readonly error: ToldError };

/** An error, as far as it can be told. */
export interface ToldError {
  readonly message: string;
  readonly stack: string | undefined;
  /** Of an `IsogymError`. */
  readonly own?: { readonly code: string; readonly hint: string | undefined; readonly exitCode: 1 | 2 };
}
