/** @module What can be trained: named weights and a pure function from them and a batch of token rows to logits. */
import type { Tensor, Tensor1D, Tensor2D } from '@tensorflow/tfjs';
import type { Random } from '../records/random.ts';

export type NamedTensors = Readonly<Record<string, Tensor>>;
/** Weights outside the backend: row-major float32. */
export interface HostTensor {
  readonly shape: readonly number[];
  readonly data: Float32Array;
}
export type Weights = Readonly<Record<string, HostTensor>>;

/** Token rows as tensors: B rows padded to length T, and the N positions whose next token is scored. */
export interface TokenRows {
  /** int32 [B, T], padded with 0 on the right. */
  readonly ids: Tensor2D;
  /** int32 [N]: flat index b·T + t of the position whose output predicts the scored token (the one before it). */
  readonly scored: Tensor1D;
}

export interface Model {
  readonly name: string;
  /** Number of logits. */
  readonly vocabulary: number;
  /** Fresh weights. */
  init(random: Random): Weights;
  /** Logits [N, vocabulary] at the scored positions. Pure in its tensors: reads nothing back. */
  logits(weights: NamedTensors, rows: TokenRows): Tensor2D;
}
