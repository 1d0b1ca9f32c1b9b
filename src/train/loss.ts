/** @module The losses, over scored tokens only: what was not sampled never enters, so nothing is multiplied by a mask. */
import * as tf from '@tensorflow/tfjs';
import { ownKernel } from '../policy/backends/own-kernel.ts';

export interface ScoredLogprobsOptions {
  /** [N, V] */
  readonly logits: tf.Tensor2D;
  /** int32 [N] */
  readonly targets: tf.Tensor1D;
  /** `rows` [S, V], 0 where allowed and `FORBIDDEN` where not; `index` int32 [N], each token's row. Absent where all is allowed. */
  readonly masks?: { readonly rows: tf.Tensor2D; readonly index: tf.Tensor1D } | undefined;
  /** T > 0 */
  readonly temperature: number;
  /** Whether the entropy is wanted. */
  readonly entropy: boolean;
}

/** Of each scored token [N], in nats, under the distribution that it was sampled from: temperature, grammar and all. */
export interface ScoredLogprobs {
  /** ln p(target) */
  readonly logprobs: tf.Tensor1D;
  /** H(p) = −Σⱼ pⱼ ln pⱼ over the allowed tokens; present where it was asked for. */
  readonly entropy?: tf.Tensor1D;
}

/**
 * Log-probabilities under p = softmax(z / T) over the allowed tokens, as one operation with a gradient of its own in `logits`:
 * ∂ ln p(y) / ∂zⱼ = ([j = y] − pⱼ) / T and ∂H / ∂zⱼ = −pⱼ (ln pⱼ + H) / T.
 *
 * Forbidden logits are replaced, not added to: whatever stands there, NaN included, changes neither value nor gradient.
 * The largest logit is taken off before the division by T, as in sampling, so that probable tokens carry little rounding.
 */
export function scoredLogprobs({
  logits,
  targets,
  masks,
  temperature,
  entropy,
}: ScoredLogprobsOptions): ScoredLogprobs {
  const [n, vocabulary] = logits.shape;
  const fused = tf.customGrad((...inputs) => {
    const [z, save] = inputs as [tf.Tensor2D, (tensors: tf.Tensor[]) => void];
    const masked = masks === undefined ? {} : { masks: masks.rows, index: masks.index };
    const [own, ownLogp] =
      ownKernel('ScoredLogprobs', { logits: z, targets, ...masked }, { temperature, entropy }) ?? [];
    if (own !== undefined && ownLogp !== undefined) {
      save([own, ownLogp, targets]);
      return {
        value: own,
        gradFunc: (dy: tf.Tensor, saved: tf.Tensor[]) => {
          const [value, logp, targets] = saved as [tf.Tensor, tf.Tensor, tf.Tensor];
          const [dz] = ownKernel('ScoredLogprobsGrad', { dy, value, logp, targets }, { temperature }) ?? [];
          return dz as tf.Tensor;
        },
      };
    }
    const allowed = masks === undefined ? z : replaceForbidden(z, masks.rows, masks.index);
    const relative = tf.div(tf.sub(allowed, tf.max(allowed, 1, true)), temperature);
    const logp: tf.Tensor2D = tf.sub(relative, tf.log(tf.sum(tf.exp(relative), 1, true)));
    const flat: tf.Tensor1D = tf.add(tf.mul(tf.range(0, n, 1, 'int32'), tf.scalar(vocabulary, 'int32')), targets);
    const picked: tf.Tensor = tf.gather(tf.reshape(logp, [-1]), flat);
    save([logp, targets]);
    return {
      value: entropy ? tf.stack([picked, entropyOf(logp)]) : picked,
      gradFunc: (dy: tf.Tensor, saved: tf.Tensor[]) => {
        const [savedLogp, savedTargets] = saved as [tf.Tensor2D, tf.Tensor1D];
        return tf.div(logitGradient(dy, savedLogp, savedTargets), temperature);
      },
    };
  });
  const value = fused(logits);
  if (!entropy) return { logprobs: value as tf.Tensor1D };
  const [logprobs, entropies] = tf.unstack(value) as [tf.Tensor1D, tf.Tensor1D];
  return { logprobs, entropy: entropies };
}

function replaceForbidden(logits: tf.Tensor2D, rows: tf.Tensor2D, index: tf.Tensor1D): tf.Tensor2D {
  const mask: tf.Tensor2D = tf.gather(rows, index);
  return tf.where(tf.less(mask, 0), mask, logits);
}

function entropyOf(logp: tf.Tensor2D): tf.Tensor1D {
  return tf.neg(tf.sum(tf.mul(tf.exp(logp), logp), 1));
}

/** For dy [N], of the logprobs, or [2, N], of logprobs and entropy: the gradient [N, V] in z / T. */
function logitGradient(dy: tf.Tensor, logp: tf.Tensor2D, targets: tf.Tensor1D): tf.Tensor2D {
  const p = tf.exp(logp);
  // Made as int32: on wasm a float32 one-hot holds the bits of the integer 1.
  const chosen = tf.sub(tf.cast(tf.oneHot(targets, logp.shape[1]), 'float32'), p);
  const column = (values: tf.Tensor) => tf.reshape(values, [-1, 1]);
  if (dy.rank === 1) return tf.mul(chosen, column(dy));
  const [dLogprob, dEntropy] = tf.unstack(dy) as [tf.Tensor, tf.Tensor];
  const spread = tf.mul(p, tf.add(logp, column(entropyOf(logp))));
  return tf.sub(tf.mul(chosen, column(dLogprob)), tf.mul(spread, column(dEntropy)));
}

export interface PolicyLossOptions {
  /** Of the current policy [N]. */
  readonly logprobs: tf.Tensor1D;
  /** Of the policy that sampled, as recorded [N]. */
  readonly behaviour: tf.Tensor1D;
  /** [N] */
  readonly advantages: tf.Tensor1D;
  /** ε of the clip, below and above 1: the ratio is held in [1 − clipLow, 1 + clipHigh]. */
  readonly clipLow: number;
  readonly clipHigh: number;
  /** Bonus on the entropy [N]. */
  readonly entropy?: { readonly values: tf.Tensor1D; readonly coefficient: number } | undefined;
  /** Penalty on the divergence from a reference policy, whose logprobs [N] these are. */
  readonly reference?: { readonly logprobs: tf.Tensor1D; readonly coefficient: number } | undefined;
  /** D, fixed by the whole batch. */
  readonly denominator: number | tf.Scalar;
}

/**
 * L = −(1/D) Σ [ min(r A, clip(r, 1 − ε₋, 1 + ε₊) A) + c_H H − c_KL k₃ ], with the ratio r = exp(logprob − behaviour).
 *
 * The clipped surrogate is PPO's (Schulman et al. 2017, arXiv 1707.06347, eq. 7) and GRPO's (arXiv 2402.03300, eq. 3), with bounds
 * that may differ (DAPO, arXiv 2503.14476); where r = 1 its gradient is REINFORCE's, −A ∇logprob / D.
 * All sums are over the N sampled tokens and no others.
 */
export function policyLoss(options: PolicyLossOptions): tf.Scalar {
  const { logprobs, behaviour, advantages, clipLow, clipHigh, entropy, reference, denominator } = options;
  const ratio = tf.exp(tf.sub(logprobs, behaviour));
  const clipped = tf.clipByValue(ratio, 1 - clipLow, 1 + clipHigh);
  let objective = tf.sum(tf.minimum(tf.mul(ratio, advantages), tf.mul(clipped, advantages)));
  if (entropy !== undefined) {
    objective = tf.add(objective, tf.mul(tf.sum(entropy.values), entropy.coefficient));
  }
  if (reference !== undefined) {
    objective = tf.sub(objective, tf.mul(tf.sum(k3(logprobs, reference.logprobs)), reference.coefficient));
  }
  return tf.div(objective, tf.neg(denominator));
}

/**
 * k₃ = e^d − d − 1 ≥ 0 with d = reference − logprob: of each token [N] an unbiased estimate of KL(current ‖ reference), if the
 * current policy sampled it (Schulman 2020, "Approximating KL divergence"; GRPO's eq. 4).
 */
export function k3(logprobs: tf.Tensor1D, reference: tf.Tensor1D): tf.Tensor1D {
  const d = tf.sub(reference, logprobs);
  return tf.sub(tf.sub(tf.exp(d), d), 1);
}

/** L = −(1/D) Σ w ln p(target): the cross-entropy of a warm start. `weights` [N]. */
export function supervisedLoss(
  logprobs: tf.Tensor1D,
  weights: tf.Tensor1D,
  denominator: number | tf.Scalar,
): tf.Scalar {
  return tf.div(tf.sum(tf.mul(logprobs, weights)), tf.neg(denominator));
}
