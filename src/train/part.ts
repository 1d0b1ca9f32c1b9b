/** @module One micro-batch's share of a step: its losses, logprobs and gradients, from tensors to tensors, with nothing read back. */
import * as tf from '@tensorflow/tfjs';
import type { Model, NamedTensors } from '../policy/model.ts';
import type { Batch } from './batch.ts';
import { k3, policyLoss, type ScoredLogprobs, scoredLogprobs, supervisedLoss } from './loss.ts';

/** What is minimised. `temperature` is that of the sampling, so that the on-policy ratio is 1. */
export type Objective =
  | {
      readonly kind: 'policy';
      readonly temperature: number;
      readonly clipLow: number;
      readonly clipHigh: number;
      /** c_H ≥ 0 */
      readonly entropyCoefficient: number;
      /** c_KL ≥ 0; above 0 only with `reference`. */
      readonly klCoefficient: number;
    }
  | { readonly kind: 'supervised'; readonly temperature: number };

/** A micro-batch as tensors; see `Batch` for what they hold. */
export interface BatchTensors {
  /** int32 [B, T] */
  readonly ids: tf.Tensor2D;
  /** int32 [N] */
  readonly scored: tf.Tensor1D;
  /** int32 [N] */
  readonly targets: tf.Tensor1D;
  /** [N] */
  readonly advantages: tf.Tensor1D;
  /** [N] */
  readonly behaviour: tf.Tensor1D;
  readonly denominator: tf.Scalar;
  /** `rows` [S, V], `index` int32 [N]. */
  readonly masks?: { readonly rows: tf.Tensor2D; readonly index: tf.Tensor1D } | undefined;
}

/** @param maskRows the batch's `masks.rows`, which micro-batches share; undefined where it has none */
export function batchTensors(batch: Batch, maskRows: tf.Tensor2D | undefined): BatchTensors {
  return {
    ids: tf.tensor2d(batch.ids, [batch.ids.length / batch.width, batch.width], 'int32'),
    scored: tf.tensor1d(batch.scored, 'int32'),
    targets: tf.tensor1d(batch.targets, 'int32'),
    advantages: tf.tensor1d(batch.advantages),
    behaviour: tf.tensor1d(batch.behaviour),
    denominator: tf.scalar(batch.denominator),
    masks: maskRows && { rows: maskRows, index: tf.tensor1d(batch.maskIndex, 'int32') },
  };
}

/** What a step does alike to every micro-batch. */
export interface PartSetting {
  readonly model: Model;
  readonly weights: NamedTensors;
  readonly objective: Objective;
  readonly reference: NamedTensors | undefined;
}

/** The sums of loss, entropy and divergence from the reference [3], the logprobs [N], and the gradients by the weight's name. */
export function partOf(
  { model, weights, objective, reference }: PartSetting,
  { ids, scored, targets, advantages, behaviour, denominator, masks }: BatchTensors,
): { readonly head: tf.Tensor1D; readonly logprobs: tf.Tensor1D; readonly gradients: NamedTensors } {
  const rows = { ids, scored };
  const { temperature } = objective;
  const score = (of: NamedTensors, entropy: boolean) =>
    scoredLogprobs({ logits: model.logits(of, rows), targets, masks, temperature, entropy });
  const anchor = reference && tf.tidy(() => score(reference, false).logprobs);

  // The gradient's scope disposes of all but the loss.
  const kept: Required<ScoredLogprobs>[] = [];
  const { value, grads } = tf.engine().gradients(
    () => {
      const { logprobs, entropy } = score(weights, true) as Required<ScoredLogprobs>;
      kept.push({ logprobs: tf.keep(logprobs), entropy: tf.keep(entropy) });
      if (objective.kind === 'supervised') return supervisedLoss(logprobs, advantages, denominator);
      const { entropyCoefficient, klCoefficient, clipLow, clipHigh } = objective;
      return policyLoss({
        logprobs,
        behaviour,
        advantages,
        clipLow,
        clipHigh,
        denominator,
        entropy: entropyCoefficient === 0 ? undefined : { values: entropy, coefficient: entropyCoefficient },
        reference: anchor && klCoefficient !== 0 ? { logprobs: anchor, coefficient: klCoefficient } : undefined,
      });
    },
    Object.values(weights),
    undefined,
    true,
  );
  const [{ logprobs, entropy }] = kept as [Required<ScoredLogprobs>];
  const divergence = anchor === undefined ? tf.scalar(0) : tf.sum(k3(logprobs, anchor));
  const result = {
    head: tf.stack([value, tf.sum(entropy), divergence]) as tf.Tensor1D,
    logprobs: logprobs.clone(),
    // A weight that this loss does not use has no gradient, and no entry.
    gradients: Object.fromEntries(
      Object.keys(weights).flatMap((name, i) => (grads[i] === undefined ? [] : [[name, grads[i]]])),
    ) as NamedTensors,
  };
  tf.dispose([logprobs, entropy]);
  return result;
}
