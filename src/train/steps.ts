/** @module What holds weights and moments and steps them: eagerly, or as recorded graphs. All or nothing: a failed update leaves both as they were. */
import type { NamedTensors, Weights } from '../policy/model.ts';
import type { AdamWOptions } from './adamw.ts';
import type { Batch } from './batch.ts';
import type { Objective } from './part.ts';
import type { StepStatistics } from './step.ts';

/** All of it outside the backend. */
export interface StepsSnapshot {
  readonly weights: Weights;
  readonly m: Weights;
  readonly v: Weights;
  /** How often each weight has been updated. */
  readonly updates: Readonly<Record<string, number>>;
  /** Where the KL penalty is anchored. */
  readonly reference: Weights | null;
}

/** Fresh weights, or what `snapshot` gave. */
export type StepsStart = { readonly weights: Weights } | StepsSnapshot;

export interface UpdateOptions {
  readonly batch: Batch;
  readonly microTokens: number;
  readonly objective: Objective;
  readonly optimizer: AdamWOptions;
  /** Bound on the global norm of the gradient. */
  readonly maxNorm: number;
  /** Steps on the same batch. */
  readonly epochs: number;
  /** Whether the batch was sampled with the weights as they are: the first epoch's ratios have to be 1. Default: not looked at. */
  readonly onPolicy?: boolean;
}

/** What one batch did to the weights. */
export interface UpdateStatistics {
  readonly microBatches: number;
  /** Share of padding among the tokens that the model was given, in [0, 1). */
  readonly paddingShare: number;
  /** One for each epoch over the batch. Where the batch is on-policy the first one's ratios are 1 but for rounding. */
  readonly steps: readonly StepStatistics[];
}

export interface Steps {
  /** The current weights: this one's own, good until the next update. */
  readonly weights: NamedTensors;
  /** The same, outside the backend; the caller's own. */
  hostWeights(): Promise<Weights>;
  /** How many shapes were recorded; 0 where nothing is. */
  readonly recordings: number;
  /** Handles that TensorFlow's addon has given out where these steps are taken; null on other backends. Absent where that is this process. */
  readonly tensorHandles?: number | null;
  /** @throws what `stepStatistics` throws, and NO_REFERENCE */
  update(options: UpdateOptions): Promise<UpdateStatistics>;
  /** The optimizer forgets. */
  forget(): Promise<void>;
  /** The weights as they are now become the reference. */
  anchor(): Promise<void>;
  snapshot(): Promise<StepsSnapshot>;
  dispose(): void;
}
