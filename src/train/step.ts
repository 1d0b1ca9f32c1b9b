/** @module One optimizer step: from named state and micro-batches to new state, with nothing read back on the way. */
import * as tf from '@tensorflow/tfjs';
import type { Model, NamedTensors } from '../policy/model.ts';
import { IsogymError, inputError } from '../records/errors.ts';
import { type AdamWOptions, adamw, added, clipByGlobalNorm, type Moments, zeroMoments } from './adamw.ts';
import { type Batch, type GrammarMasks, locate } from './batch.ts';
import { batchTensors, type Objective, partOf } from './part.ts';

export interface TrainState {
  readonly weights: NamedTensors;
  readonly moments: Moments;
}

export type { Objective } from './part.ts';

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
export const HEAD = 4;

/** Place of the gradient's norm among them; what is before it are sums. */
export const NORM = HEAD - 1;

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
      const fixed = { model: input.model, weights: state.weights, objective, reference: input.reference };
      const part = tf.tidy(() => partOf(fixed, batchTensors(batch, masks && maskRows.get(masks))));
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
      packed: tf.concat1d([added(heads), tf.reshape(clipped.norm, [1]), ...logprobs]),
    };
  });
  return { state: { weights, moments: { m, v, updates } }, packed };
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
 * @throws OFF_POLICY where `onPolicy` says that the batch was sampled with these very weights, and its recorded logprobs are of another policy.
 *   In each case the new state is worthless and the old one, still undisposed, reproduces it.
 */
export async function readStatistics(
  packed: tf.Tensor1D,
  {
    batches,
    objective,
    reference,
    onPolicy,
  }: Pick<StepInput, 'batches' | 'objective' | 'reference'> & { readonly onPolicy?: boolean },
): Promise<StepStatistics> {
  const values = await packed.data<'float32'>();
  packed.dispose();
  return stepStatistics(values, { batches, objective, reference: reference !== undefined, onPolicy });
}

/** The same from what `packed` holds. @throws as `readStatistics` */
export function stepStatistics(
  values: Float32Array,
  {
    batches,
    objective,
    reference,
    onPolicy = false,
  }: {
    readonly batches: readonly Batch[];
    readonly objective: Objective;
    readonly reference: boolean;
    readonly onPolicy?: boolean | undefined;
  },
): StepStatistics {
  const [loss = Number.NaN, entropy = Number.NaN, divergence = Number.NaN, gradientNorm = Number.NaN] = values;
  const logprobs = values.subarray(HEAD);
  const { drift, farthest } = driftOf(logprobs, batches, objective);
  if (onPolicy) requireOnPolicy(drift, farthest);
  requireFinite('NONFINITE_LOSS', 'the loss', loss, farthest);
  requireFinite('NONFINITE_GRADIENT', 'the norm of the gradient', gradientNorm, farthest);
  const tokens = logprobs.length;
  return {
    loss,
    gradientNorm,
    entropy: entropy / tokens,
    tokens,
    drift: objective.kind === 'policy' ? drift : null,
    referenceKl: reference ? divergence / tokens : null,
  };
}

/** KL(behaviour ‖ current) that rounding never comes to [nats a token]: it is the mean of about half the square of a logprob's error, and TF32 errs by hundredths. */
const NO_ROUNDING = 0.01;

function requireOnPolicy({ kl }: Drift, farthest: () => string): void {
  if (kl <= NO_ROUNDING) return;
  throw new IsogymError(
    'OFF_POLICY',
    `expected the logprobs that were recorded in sampling, found others from the same weights: they diverge by ${kl} nats a token, farthest is ${farthest()}`,
    { hint: 'The backend samples otherwise than it trains. Use another one (isogym doctor), or replay: false.' },
  );
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
