/** @module AdamW keyed by name, and clipping by the global norm: pure functions from named tensors to new named tensors. */
import * as tf from '@tensorflow/tfjs';
import type { NamedTensors } from '../policy/model.ts';
import { IsogymError } from '../records/errors.ts';

/** What the optimizer remembers of every weight, by the weight's name. */
export interface Moments {
  /** First moments, shaped as the weights. */
  readonly m: NamedTensors;
  /** Second moments, shaped as the weights. */
  readonly v: NamedTensors;
  /** How often each weight has been updated: its bias correction counts by that. */
  readonly updates: Readonly<Record<string, number>>;
}

export interface AdamWOptions {
  /** η */
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  /** ε, added to the root of the corrected second moment. */
  readonly epsilon: number;
  /** λ, decoupled from the gradient: θ ← θ − ηλθ. For weights of rank 2 and more; gains and biases are left alone. */
  readonly weightDecay: number;
}

/** No update yet: all zero. */
export function zeroMoments(weights: NamedTensors): Moments {
  const zeros = () => Object.fromEntries(Object.entries(weights).map(([name, weight]) => [name, tf.zerosLike(weight)]));
  return { m: zeros(), v: zeros(), updates: Object.fromEntries(Object.keys(weights).map((name) => [name, 0])) };
}

/**
 * One update (Loshchilov & Hutter 2019, algorithm 2, in the order of torch.optim.AdamW), t counting the weight's own updates:
 * θ ← θ − ηλθ; m ← m + (1 − β₁)(g − m); v ← v + (1 − β₂)(g² − v); θ ← θ − η/(1 − β₁ᵗ) · m / (√v / √(1 − β₂ᵗ) + ε).
 *
 * A weight without a gradient in this step is handed on as it was: value, moments and count. All tensors returned are the
 * caller's, and none is one of the arguments': those can be disposed of apart.
 *
 * @throws NO_MOMENTS where `moments` does not know a weight.
 */
export function adamw(
  weights: NamedTensors,
  gradients: NamedTensors,
  moments: Moments,
  options: AdamWOptions,
): { readonly weights: NamedTensors; readonly moments: Moments } {
  const updates: Record<string, number> = {};
  const next = tf.tidy(() => {
    const rates = new Map<number, Rates>();
    const out: Record<'weights' | 'm' | 'v', Record<string, tf.Tensor>> = { weights: {}, m: {}, v: {} };
    for (const [name, weight] of Object.entries(weights)) {
      const { [name]: m } = moments.m;
      const { [name]: v } = moments.v;
      const { [name]: count } = moments.updates;
      if (m === undefined || v === undefined || count === undefined) {
        throw new IsogymError('NO_MOMENTS', `weight ${name}: expected moments of that name, found none`, {
          hint: 'A checkpoint holds weights and moments together; begin anew with zeroMoments(weights).',
        });
      }
      const g = gradients[name];
      const t = g === undefined ? count : count + 1;
      const rate = rates.get(t) ?? ratesAt(t, options);
      rates.set(t, rate);
      updates[name] = t;
      const [weight1, m1, v1] =
        g === undefined ? [weight.clone(), m.clone(), v.clone()] : update(weight, g, m, v, rate);
      out.weights[name] = weight1;
      out.m[name] = m1;
      out.v[name] = v1;
    }
    return out;
  });
  return { weights: next.weights, moments: { m: next.m, v: next.v, updates } };
}

/** All that changes from step to step, as scalars made once and not once a weight. */
type Rates = ReturnType<typeof ratesAt>;

function ratesAt(t: number, { learningRate, beta1, beta2, epsilon, weightDecay }: AdamWOptions) {
  return {
    kept: weightDecay === 0 ? undefined : tf.scalar(1 - learningRate * weightDecay),
    gain1: tf.scalar(1 - beta1),
    gain2: tf.scalar(1 - beta2),
    rootCorrection2: tf.scalar(Math.sqrt(1 - beta2 ** t)),
    stepSize: tf.scalar(learningRate / (1 - beta1 ** t)),
    epsilon: tf.scalar(epsilon),
  };
}

function update(
  weight: tf.Tensor,
  g: tf.Tensor,
  m: tf.Tensor,
  v: tf.Tensor,
  rate: Rates,
): [tf.Tensor, tf.Tensor, tf.Tensor] {
  const decayed = rate.kept !== undefined && weight.rank >= 2 ? tf.mul(weight, rate.kept) : weight;
  const m1 = tf.add(m, tf.mul(tf.sub(g, m), rate.gain1));
  const v1 = tf.add(v, tf.mul(tf.sub(tf.square(g), v), rate.gain2));
  const denominator = tf.add(tf.div(tf.sqrt(v1), rate.rootCorrection2), rate.epsilon);
  return [tf.sub(decayed, tf.mul(rate.stepSize, tf.div(m1, denominator))), m1, v1];
}

/** The sum of one or more, one after the other: a GPU's kernel takes fewer inputs at once than there are weights. */
export function added<T extends tf.Tensor>(tensors: readonly T[]): T {
  return tensors.reduce((sum, one): T => tf.add(sum, one));
}

/**
 * Scales all gradients by min(1, maxNorm / ‖g‖), ‖g‖ being the norm of all of them as one vector (Pascanu, Mikolov & Bengio 2013,
 * algorithm 1; no epsilon: the divisor is max(‖g‖, maxNorm)).
 *
 * @param maxNorm > 0; Infinity clips nothing.
 * @returns new tensors, and the norm before clipping.
 */
export function clipByGlobalNorm(
  gradients: NamedTensors,
  maxNorm: number,
): { readonly gradients: NamedTensors; readonly norm: tf.Scalar } {
  return tf.tidy(() => {
    const squares = Object.values(gradients).map((g): tf.Scalar => tf.sum(tf.square(g)));
    const norm: tf.Scalar = tf.sqrt(squares.length === 0 ? tf.scalar(0) : added(squares));
    const scale = maxNorm === Number.POSITIVE_INFINITY ? tf.scalar(1) : tf.div(maxNorm, tf.maximum(norm, maxNorm));
    return {
      gradients: Object.fromEntries(Object.entries(gradients).map(([name, g]) => [name, tf.mul(g, scale)])),
      norm,
    };
  });
}
