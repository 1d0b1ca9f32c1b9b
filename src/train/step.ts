/** @module One optimizer step: from named state and micro-batches to new state, with nothing read back on the way. */
import * as tf from '@tensorflow/tfjs';
import type { Model, NamedTensors } from '../policy/model.ts';
import { IsogymError, inputError } from '../records/errors.ts';
import { type AdamWOptions, adamw, clipByGlobalNorm, type Moments, zeroMoments } from './adamw.ts';
import { type Batch, type GrammarMasks, locate } from './batch.ts';
import { k3, policyLoss, type ScoredLogprobs, scoredLogprobs, supervisedLoss } from './loss.ts';

export interface TrainState {
  readonly weights: NamedTensors;
  readonly moments: Moments;
}

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

export interface StepInput {
  readonly model: Model;
  readonly state: TrainState;
  /** Micro-batches of one batch: their gradients are summed. */
  readonly batches: readonly Batch[];
  readonly objective: Objective;
  readonly optimizer: AdamWOptions;
  /** Bound on the global norm of the gradient. */
  readonly maxNorm: number;
  /** The weights of the reference policy; only for objective `policy`. */
  readonly reference?: NamedTensors;
}

export interface StepOutput {
  /** New tensors throughout; the old state stays the caller's, to be disposed of once `readStatistics` has not complained. */
  readonly state: TrainState;
  /** For `readStatistics`. */
  readonly packed: tf.Tensor1D;
}

/** In `packed`: these four, then the logprobs of all scored tokens in the batches' order. */
const HEAD = 4;

/** The state before the first step. The weights become part of it. */
export function initialState(weights: NamedTensors): TrainState {
  return { weights, moments: zeroMoments(weights) };
}

export function disposeState({ weights, moments }: TrainState): void {
  for (const named of [weights, moments.m, moments.v]) tf.dispose(Object.values(named));
}

/**
 * Sums the micro-batches' gradients, clips, and updates: the whole batch's step, however it was split. Disposes of all
 * that it makes but its result.
 *
 * @throws NO_REFERENCE where the objective has a KL penalty and there is no reference.
 */
export function trainStep(input: StepInput): StepOutput {
  const { state, optimizer, maxNorm, objective } = input;
  if (objective.kind === 'policy' && objective.klCoefficient !== 0 && input.reference === undefined) {
    throw inputError(
      'NO_REFERENCE',
      `klCoefficient ${objective.klCoefficient}: expected a reference policy, found none`,
    );
  }
  let updates: Moments['updates'] = {};
  const { weights, m, v, packed } = tf.tidy(() => {
    const maskRows = new Map<GrammarMasks, tf.Tensor2D>();
    const heads: tf.Tensor1D[] = [];
    const logprobs: tf.Tensor1D[] = [];
    const gradients: Record<string, tf.Tensor> = {};
    for (const batch of input.batches) {
      const { masks } = batch;
      if (masks !== undefined && !maskRows.has(masks)) {
        maskRows.set(masks, tf.tensor2d(masks.rows, [masks.states, masks.vocabulary]));
      }
      const part = tf.tidy(() => partOf(input, batch, masks && maskRows.get(masks)));
      heads.push(part.head);
      logprobs.push(part.logprobs);
      for (const [name, gradient] of Object.entries(part.gradients)) {
        const sum = gradients[name];
        gradients[name] = sum === undefined ? gradient : tf.add(sum, gradient);
        if (sum !== undefined) tf.dispose([sum, gradient]);
      }
    }
    const clipped = clipByGlobalNorm(gradients, maxNorm);
    const next = adamw(state.weights, clipped.gradients, state.moments, optimizer);
    updates = next.moments.updates;
    return {
      weights: next.weights,
      m: next.moments.m,
      v: next.moments.v,
      packed: tf.concat1d([tf.addN(heads), tf.reshape(clipped.norm, [1]), ...logprobs]),
    };
  });
  return { state: { weights, moments: { m, v, updates } }, packed };
}

/** Of one micro-batch: the sums of loss, entropy and divergence from the reference [3], the logprobs [n], and the gradients by name. */
function partOf({ model, state, objective, reference }: StepInput, batch: Batch, maskRows: tf.Tensor2D | undefined) {
  const rows = {
    ids: tf.tensor2d(batch.ids, [batch.rows.length, batch.width], 'int32'),
    scored: tf.tensor1d(batch.scored, 'int32'),
  };
  const targets = tf.tensor1d(batch.targets, 'int32');
  const advantages = tf.tensor1d(batch.advantages);
  const behaviour = tf.tensor1d(batch.behaviour);
  const masks = maskRows && { rows: maskRows, index: tf.tensor1d(batch.maskIndex, 'int32') };
  const { temperature } = objective;
  const score = (weights: NamedTensors, entropy: boolean) =>
    scoredLogprobs({ logits: model.logits(weights, rows), targets, masks, temperature, entropy });
  const anchor = reference && tf.tidy(() => score(reference, false).logprobs);

  // The gradient's scope disposes of all but the loss.
  const kept: Required<ScoredLogprobs>[] = [];
  const { value, grads } = tf.engine().gradients(
    () => {
      const { logprobs, entropy } = score(state.weights, true) as Required<ScoredLogprobs>;
      kept.push({ logprobs: tf.keep(logprobs), entropy: tf.keep(entropy) });
      const { denominator } = batch;
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
    Object.values(state.weights),
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
      Object.keys(state.weights).flatMap((name, i) => (grads[i] === undefined ? [] : [[name, grads[i]]])),
    ) as NamedTensors,
  };
  tf.dispose([logprobs, entropy]);
  return result;
}

export interface StepStatistics {
  readonly loss: number;
  /** Before clipping. */
  readonly gradientNorm: number;
  /** Mean over scored tokens [nats]. */
  readonly entropy: number;
  /** Scored tokens. */
  readonly tokens: number;
  /** How far the current policy, before this step, is from the one that sampled; null for a supervised objective. */
  readonly drift: Drift | null;
  /** Mean of k₃ over the scored tokens [nats]: KL(current ‖ reference); null without a reference. */
  readonly referenceKl: number | null;
}

/** With r = exp(logprob − behaviour) of each scored token. */
export interface Drift {
  /** Mean of r. */
  readonly meanRatio: number;
  /** Largest |r − 1|: on-policy only rounding. */
  readonly maxRatioDeviation: number;
  /** Share of tokens whose gradient the clip takes away: A > 0 and r > 1 + ε₊, or A < 0 and r < 1 − ε₋. */
  readonly clipFraction: number;
  /** Mean of r − 1 − ln r [nats]: an estimate of KL(behaviour ‖ current) (Schulman 2020's k₃). */
  readonly kl: number;
}

/**
 * The step's one reading. Disposes of `packed`; the ratios are taken in double precision.
 *
 * @throws NONFINITE_LOGPROB naming episode and position of the first scored token whose logprob is NaN or infinite.
 * @throws NONFINITE_LOSS, NONFINITE_GRADIENT where all logprobs are finite and the loss, or the gradient, is not.
 *   In each case the new state is worthless and the old one, still undisposed, reproduces it.
 */
export async function readStatistics(
  packed: tf.Tensor1D,
  { batches, objective, reference }: Pick<StepInput, 'batches' | 'objective' | 'reference'>,
): Promise<StepStatistics> {
  const values = await packed.data<'float32'>();
  packed.dispose();
  const [loss = Number.NaN, entropy = Number.NaN, divergence = Number.NaN, gradientNorm = Number.NaN] = values;
  const logprobs = values.subarray(HEAD);
  const { drift, farthest } = driftOf(logprobs, batches, objective);
  requireFinite('NONFINITE_LOSS', 'the loss', loss, farthest);
  requireFinite('NONFINITE_GRADIENT', 'the norm of the gradient', gradientNorm, farthest);
  const tokens = logprobs.length;
  return {
    loss,
    gradientNorm,
    entropy: entropy / tokens,
    tokens,
    drift: objective.kind === 'policy' ? drift : null,
    referenceKl: reference === undefined ? null : divergence / tokens,
  };
}

function requireFinite(code: string, what: string, value: number, farthest: () => string): void {
  if (Number.isFinite(value)) return;
  throw new IsogymError(
    code,
    `expected ${what} to be finite, found ${value}; every logprob is finite, farthest from its recorded one is ${farthest()}`,
    {
      hint: 'Lower the learning rate; if the ratio there is near 1, look at the advantages and the gradients of the model.',
    },
  );
}

/** @returns also, in words, the token with the largest |ratio − 1|. @throws NONFINITE_LOGPROB */
function driftOf(logprobs: Float32Array, batches: readonly Batch[], objective: Objective) {
  const { clipLow, clipHigh } = objective.kind === 'policy' ? objective : { clipLow: 0, clipHigh: 0 };
  let [at, sum, most, clipped, kl] = [0, 0, 0, 0, 0];
  let farthest = () => '';
  for (const batch of batches) {
    for (let n = 0; n < batch.targets.length; n++, at++) {
      const logprob = logprobs[at] ?? Number.NaN;
      if (!Number.isFinite(logprob)) throw nonfinite(batch, n, logprob);
      const logRatio = logprob - (batch.behaviour[n] ?? 0);
      const ratio = Math.exp(logRatio);
      const advantage = batch.advantages[n] ?? 0;
      sum += ratio;
      kl += ratio - 1 - logRatio;
      if ((advantage > 0 && ratio > 1 + clipHigh) || (advantage < 0 && ratio < 1 - clipLow)) clipped++;
      if (Math.abs(ratio - 1) >= most) {
        most = Math.abs(ratio - 1);
        farthest = () => `${locate(batch, n)}, ratio ${ratio}`;
      }
    }
  }
  const drift: Drift = { meanRatio: sum / at, maxRatioDeviation: most, clipFraction: clipped / at, kl: kl / at };
  return { drift, farthest };
}

function nonfinite(batch: Batch, n: number, logprob: number): IsogymError {
  return new IsogymError(
    'NONFINITE_LOGPROB',
    `${locate(batch, n)}: expected a finite logprob of the sampled token ${batch.targets[n]}, found ${logprob}`,
    { hint: 'The weights have diverged: lower the learning rate, or resume from an earlier checkpoint.' },
  );
}
