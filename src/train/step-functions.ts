/** @module The functions that a replayed step is recorded as: a micro-batch's gradients and their norm, the update, and going back behind it. */
import * as tf from '@tensorflow/tfjs';
import type { Model, NamedTensors } from '../policy/model.ts';
import { attribute } from '../policy/replay/protobuf.ts';
import { assign, type Effect } from '../policy/replay/recorded-function.ts';
import type { Session } from '../policy/replay/session.ts';
import { tidy } from '../policy/transformer/custom-gradient.ts';
import { IsogymError } from '../records/errors.ts';
import type { AdamWOptions } from './adamw.ts';
import type { BucketedBatch } from './buckets.ts';
import { type BatchTensors, batchTensors, type Objective, partOf } from './part.ts';

/** Prefixes of the variables: weights, both moments, summed gradients, the reference, and what a failed update goes back to. */
export const W = 'w/';
export const M = 'm/';
export const V = 'v/';
export const G = 'g/';
export const R = 'r/';
export const KEPT = 'kept/';

export const KEEP = 'keep';
const APPLY = 'apply';
const FLOAT = 1;

interface Feeds extends Omit<BatchTensors, 'masks'> {
  readonly maskRows: tf.Tensor2D;
  readonly maskIndex: tf.Tensor1D;
  readonly [name: string]: tf.Tensor;
}

/** The padded batch as the feeds of its gradients, disposed of afterwards. */
export function withFeeds<T>({ padded }: BucketedBatch, use: (feeds: Feeds) => T): T {
  return tidy(() => {
    const { rows, states, vocabulary } = padded.masks;
    const maskRows = tf.tensor2d(rows, [states, vocabulary]);
    const { masks: _, ...tensors } = batchTensors(padded, maskRows);
    return use({ ...tensors, maskRows, maskIndex: tf.tensor1d(padded.maskIndex, 'int32') });
  });
}

/**
 * The gradients of one bucket, which end in G: `first` overwrites what is there, `more` adds to it. The output of the same name is the
 * sums of loss, entropy and divergence, the norm of G as one vector as it then is, and the logprobs of the padded tokens.
 * @param weights their names
 * @param reference whether R is there and measured against
 * @returns the function's name
 */
export function defineGradients(
  session: Session,
  { model, weights }: { readonly model: Model; readonly weights: readonly string[] },
  part: BucketedBatch,
  { objective, reference }: { readonly objective: Objective; readonly reference: boolean },
): string {
  const { rows, width, scored, states } = part.bucket;
  const name = [JSON.stringify(objective), reference, rows, width, scored, states].join(' ');
  if (session.has(name)) return name;
  withFeeds(part, (feeds) =>
    session.define(name, feeds, ({ read }) => {
      const all = (prefix: string) => Object.fromEntries(weights.map((weight) => [weight, read(prefix + weight)]));
      const { head, logprobs, gradients } = partOf(
        { model, weights: all(W), objective, reference: reference ? all(R) : undefined },
        { ...feeds, masks: { rows: feeds.maskRows, index: feeds.maskIndex } },
      );
      const first = mapNames(weights, (weight) => gradientOf(gradients, weight));
      const more = mapNames(weights, (weight) => tf.add(read(G + weight), gradientOf(gradients, weight)));
      const packed = (sums: NamedTensors) => tf.concat1d([head, tf.reshape(norm(sums), [1]), logprobs]);
      const into = (sums: NamedTensors) => weights.map((weight) => assign(G + weight, sums[weight] as tf.Tensor));
      return {
        outputs: { first: packed(first), more: packed(more) },
        endings: { first: into(first), more: into(more) },
      };
    }),
  );
  return name;
}

/**
 * The update, ending `apply`: AdamW (`adamw` has the formula) by TensorFlow's fused operation, which computes θ − α · m / (√v + ε̂).
 * With the powers of β given as 0 its α is the rate as it is, so that α and ε̂ are fed: see `applyFeeds`.
 * @param ranks of the weights by their names: those of rank 2 and more decay
 * @returns the function's name
 */
export function defineApply(
  session: Session,
  ranks: Readonly<Record<string, number>>,
  { beta1, beta2, weightDecay }: AdamWOptions,
): string {
  const name = `${APPLY} ${[beta1, beta2, weightDecay === 0]}`;
  if (session.has(name)) return name;
  tf.tidy(() => {
    const [zero, b1, b2] = [tf.scalar(0), tf.scalar(beta1), tf.scalar(beta2)];
    const feeds = { scale: tf.scalar(1), kept: tf.scalar(1), rate: tf.scalar(1), epsilon: tf.scalar(1) };
    session.define(name, feeds, ({ read }) => {
      const effects = Object.entries(ranks).flatMap(([weight, rank]): Effect[] => {
        const adam: Effect = {
          op: 'ResourceApplyAdam',
          variables: [W + weight, M + weight, V + weight],
          operands: [zero, zero, feeds.rate, b1, b2, feeds.epsilon, tf.mul(read(G + weight), feeds.scale)],
          attributes: { T: attribute.type(FLOAT) },
        };
        const decays = weightDecay !== 0 && rank >= 2;
        return decays ? [assign(W + weight, tf.mul(read(W + weight), feeds.kept)), adam] : [adam];
      });
      return { outputs: { result: tf.add(feeds.rate, 0) }, endings: { apply: effects } };
    });
  });
  return name;
}

/**
 * α = η √(1 − β₂ᵗ) / (1 − β₁ᵗ) and ε̂ = ε √(1 − β₂ᵗ), worked out in double precision.
 * @param t of this update, from 1
 * @param scale of the gradients
 */
export function applyFeeds(
  { learningRate, beta1, beta2, epsilon, weightDecay }: AdamWOptions,
  t: number,
  scale: number,
): NamedTensors {
  const correction = Math.sqrt(1 - beta2 ** t);
  return {
    scale: tf.scalar(scale),
    kept: tf.scalar(1 - learningRate * weightDecay),
    rate: tf.scalar((learningRate * correction) / (1 - beta1 ** t)),
    epsilon: tf.scalar(epsilon * correction),
  };
}

/** `KEEP`, which ends in `keep`, copying these variables to KEPT, or in `restore`, copying them back. */
export function defineKeep(session: Session, variables: readonly string[]): void {
  if (session.has(KEEP)) return;
  session.define(KEEP, {}, ({ read }) => ({
    outputs: { done: tf.scalar(0) },
    endings: {
      keep: variables.map((name) => assign(KEPT + name, read(name))),
      restore: variables.map((name) => assign(name, read(KEPT + name))),
    },
  }));
}

function gradientOf(gradients: NamedTensors, weight: string): tf.Tensor {
  const gradient = gradients[weight];
  if (gradient !== undefined) return gradient;
  throw new IsogymError('NOT_RECORDABLE', `expected a gradient of every weight, found none of ${weight}`, {
    hint: 'A weight that the loss does not use is stepped eagerly only: replay: false',
  });
}

function mapNames(names: readonly string[], make: (name: string) => tf.Tensor): NamedTensors {
  return Object.fromEntries(names.map((name) => [name, make(name)]));
}

/** Of all of them as one vector. */
function norm(gradients: NamedTensors): tf.Scalar {
  return tf.sqrt(tf.addN(Object.values(gradients).map((gradient): tf.Scalar => tf.sum(tf.square(gradient)))));
}
