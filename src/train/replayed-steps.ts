/**
 * @module Steps as recorded graphs, on `native` and `cuda`: weights, moments and gradients live in a session, and a step is three calls
 * of it: the micro-batches' gradients, their norm, and, once all of it is known to be finite, the update.
 */
import * as tf from '@tensorflow/tfjs';
import type { Model, NamedTensors, Weights } from '../policy/model.ts';
import { attribute } from '../policy/replay/protobuf.ts';
import { assign, assignAdd, type Effect } from '../policy/replay/recorded-function.ts';
import { Session } from '../policy/replay/session.ts';
import { tidy } from '../policy/transformer/custom-gradient.ts';
import { IsogymError, inputError } from '../records/errors.ts';
import type { AdamWOptions } from './adamw.ts';
import { type BucketedBatch, bucketed, bucketPadding } from './buckets.ts';
import { onDevice, onHost } from './eager-steps.ts';
import { type BatchTensors, batchTensors, type Objective, partOf } from './part.ts';
import { HEAD, type StepStatistics, stepStatistics } from './step.ts';
import type { Steps, StepsSnapshot, UpdateOptions, UpdateStatistics } from './steps.ts';

/** Prefixes of the variables: weights, both moments, summed gradients, the reference, and what a failed update goes back to. */
const W = 'w/';
const M = 'm/';
const V = 'v/';
const G = 'g/';
const R = 'r/';
const KEPT = 'kept/';
const FLOAT = 1;
const NORM = 'norm';
const APPLY = 'apply';
const KEEP = 'keep';

export class ReplayedSteps implements Steps {
  readonly #model: Model;
  readonly #session = new Session();
  readonly #names: readonly string[];
  /** Rank of each weight. */
  readonly #ranks: Readonly<Record<string, number>>;
  /** How often the weights were updated: all of them at each step. */
  #updates: number;
  #hasReference = false;
  #weights: NamedTensors | undefined;
  /** Set where an update failed between its first and its last change, which takes a failure of TensorFlow itself. */
  #broken = false;

  constructor(model: Model, start: { readonly weights: Weights } | StepsSnapshot) {
    this.#model = model;
    this.#names = Object.keys(start.weights);
    this.#ranks = Object.fromEntries(this.#names.map((name) => [name, start.weights[name]?.shape.length ?? 0]));
    const zero = mapWeights(start.weights, ({ shape, data }) => ({ shape, data: new Float32Array(data.length) }));
    const resumed: StepsSnapshot =
      'm' in start ? start : { weights: start.weights, m: zero, v: zero, updates: {}, reference: null };
    const counts = new Set(this.#names.map((name) => resumed.updates[name] ?? 0));
    if (counts.size > 1) {
      throw inputError(
        'UNEVEN_UPDATES',
        'expected weights that were all updated equally often, found others',
        'Go on with it eagerly: replay: false',
      );
    }
    [this.#updates = 0] = counts;
    for (const [prefix, values] of [
      [W, start.weights],
      [M, resumed.m],
      [V, resumed.v],
      [G, zero],
    ] as const) {
      this.#declare(prefix, values);
    }
    if (resumed.reference !== null) {
      this.#declare(R, resumed.reference);
      this.#hasReference = true;
    }
  }

  get recordings(): number {
    return this.#session.recordings;
  }

  /** Of all that was recorded so far. */
  get operations(): number {
    return this.#session.operations;
  }

  get weights(): NamedTensors {
    this.#weights ??= this.#keptRead(W);
    return this.#weights;
  }

  async update(options: UpdateOptions): Promise<UpdateStatistics> {
    const { batch, microTokens, objective, optimizer, maxNorm, epochs } = options;
    if (objective.kind === 'policy' && objective.klCoefficient !== 0 && !this.#hasReference) {
      throw inputError(
        'NO_REFERENCE',
        `klCoefficient ${objective.klCoefficient}: expected a reference policy, found none`,
      );
    }
    const parts = bucketed(batch, microTokens, this.#model.vocabulary);
    const steps: StepStatistics[] = [];
    const updates = this.#updates;
    if (epochs > 1) this.#keep();
    try {
      for (let epoch = 0; epoch < epochs; epoch++) steps.push(this.#step(parts, objective, optimizer, maxNorm));
    } catch (error) {
      if (this.#updates > updates) this.#restore(updates);
      throw error;
    }
    return { microBatches: parts.length, paddingShare: bucketPadding(parts), steps };
  }

  forget(): void {
    for (const prefix of [M, V]) {
      for (const name of this.#names) {
        tf.tidy(() => {
          const { [name]: w } = this.weights;
          this.#session.write({ [prefix + name]: tf.zerosLike(w as tf.Tensor) });
        });
      }
    }
    this.#updates = 0;
  }

  anchor(): void {
    const values = prefixed(R, this.weights);
    if (this.#hasReference) this.#session.write(values);
    else this.#session.declare(values);
    this.#hasReference = true;
  }

  async snapshot(): Promise<StepsSnapshot> {
    if (this.#broken) throw broken();
    const host = async (prefix: string): Promise<Weights> => {
      const values = this.#keptRead(prefix);
      try {
        return await onHost(values);
      } finally {
        tf.dispose(Object.values(values));
      }
    };
    return {
      weights: await host(W),
      m: await host(M),
      v: await host(V),
      updates: Object.fromEntries(this.#names.map((name) => [name, this.#updates])),
      reference: this.#hasReference ? await host(R) : null,
    };
  }

  dispose(): void {
    this.#forgetRead();
    this.#session.dispose();
  }

  #declare(prefix: string, values: Weights): void {
    const tensors = prefixed(prefix, onDevice(values));
    this.#session.declare(tensors);
    tf.dispose(Object.values(tensors));
  }

  /** One step; the weights change in its last call, once nothing can be wrong with it. */
  #step(
    parts: readonly BucketedBatch[],
    objective: Objective,
    optimizer: AdamWOptions,
    maxNorm: number,
  ): StepStatistics {
    if (this.#broken) throw broken();
    const reference = objective.kind === 'policy' && this.#hasReference;
    // All that is new is recorded before anything is run: each new function after that would mean another session.
    this.#defineNorm();
    const apply = this.#defineApply(optimizer);
    const names = parts.map((part) => this.#defineGradients(part, objective, reference));
    const head = new Float64Array(HEAD);
    const logprobs: Float32Array[] = [];
    for (const [i, part] of parts.entries()) {
      const packed = withFeeds(part, (feeds) => this.#run(names[i] ?? '', feeds, i === 0 ? 'first' : 'more'));
      for (let n = 0; n < HEAD - 1; n++) head[n] = (head[n] ?? 0) + (packed[n] ?? Number.NaN);
      logprobs.push(packed.subarray(HEAD - 1, HEAD - 1 + part.real.targets.length));
    }
    const [norm = Number.NaN] = this.#run(NORM, {});
    head[HEAD - 1] = norm;
    const statistics = stepStatistics(joined(head, logprobs), {
      batches: parts.map(({ real }) => real),
      objective,
      reference,
    });
    this.#apply(apply, optimizer, maxNorm === Number.POSITIVE_INFINITY ? 1 : maxNorm / Math.max(norm, maxNorm));
    return statistics;
  }

  /** What the function gives as its one output `result`. */
  #run(name: string, feeds: NamedTensors, ending?: string): Float32Array {
    return tf.tidy(() => this.#session.run(name, feeds, ending).result?.dataSync() as Float32Array);
  }

  /** Its result: the sums of loss, entropy and divergence, then the logprobs of the padded tokens. @returns its name */
  #defineGradients(part: BucketedBatch, objective: Objective, reference: boolean): string {
    const { rows, width, scored, states } = part.bucket;
    const name = [JSON.stringify(objective), reference, rows, width, scored, states].join(' ');
    if (this.#session.has(name)) return name;
    withFeeds(part, (feeds) =>
      this.#session.define(name, feeds, ({ read }) => {
        const all = (prefix: string) =>
          Object.fromEntries(this.#names.map((weight) => [weight, read(prefix + weight)]));
        const { head, logprobs, gradients } = partOf(
          { model: this.#model, weights: all(W), objective, reference: reference ? all(R) : undefined },
          { ...feeds, masks: { rows: feeds.maskRows, index: feeds.maskIndex } },
        );
        const by = (effect: (variable: string, value: tf.Tensor) => Effect) =>
          this.#names.map((weight) => effect(G + weight, gradientOf(gradients, weight)));
        return {
          outputs: { result: tf.concat1d([head, logprobs]) },
          endings: { first: by(assign), more: by(assignAdd) },
        };
      }),
    );
    return name;
  }

  #defineNorm(): void {
    if (this.#session.has(NORM)) return;
    this.#session.define(NORM, {}, ({ read }) => {
      const squares = this.#names.map((name): tf.Scalar => tf.sum(tf.square(read(G + name))));
      return { outputs: { result: tf.sqrt(tf.addN(squares)) } };
    });
  }

  /**
   * AdamW (`adamw` has the formula) by TensorFlow's fused operation, which computes θ − α · m / (√v + ε̂). With the powers of β given
   * as 0 its α is the rate as it is, so that α = η √(1 − β₂ᵗ) / (1 − β₁ᵗ) and ε̂ = ε √(1 − β₂ᵗ) are worked out here, in double precision.
   */
  #defineApply({ beta1, beta2, weightDecay }: AdamWOptions): string {
    const name = `${APPLY} ${[beta1, beta2, weightDecay === 0]}`;
    if (this.#session.has(name)) return name;
    tf.tidy(() => {
      const [zero, b1, b2] = [tf.scalar(0), tf.scalar(beta1), tf.scalar(beta2)];
      const feeds = { scale: tf.scalar(1), kept: tf.scalar(1), rate: tf.scalar(1), epsilon: tf.scalar(1) };
      this.#session.define(name, feeds, ({ read }) => {
        const effects = this.#names.flatMap((weight): Effect[] => {
          const adam: Effect = {
            op: 'ResourceApplyAdam',
            variables: [W + weight, M + weight, V + weight],
            operands: [zero, zero, feeds.rate, b1, b2, feeds.epsilon, tf.mul(read(G + weight), feeds.scale)],
            attributes: { T: attribute.type(FLOAT) },
          };
          const decays = weightDecay !== 0 && (this.#ranks[weight] ?? 0) >= 2;
          return decays ? [assign(W + weight, tf.mul(read(W + weight), feeds.kept)), adam] : [adam];
        });
        return { outputs: { result: tf.add(feeds.rate, 0) }, endings: { apply: effects } };
      });
    });
    return name;
  }

  #apply(name: string, { learningRate, beta1, beta2, epsilon, weightDecay }: AdamWOptions, scale: number): void {
    const t = this.#updates + 1;
    const correction = Math.sqrt(1 - beta2 ** t);
    this.#forgetRead();
    this.#broken = true;
    tf.tidy(() => {
      const feeds = {
        scale: tf.scalar(scale),
        kept: tf.scalar(1 - learningRate * weightDecay),
        rate: tf.scalar((learningRate * correction) / (1 - beta1 ** t)),
        epsilon: tf.scalar(epsilon * correction),
      };
      this.#session.run(name, feeds, 'apply');
    });
    this.#broken = false;
    this.#updates = t;
  }

  /** Remembers weights and moments. No copy is made until they change. */
  #keep(): void {
    const variables = [W, M, V].flatMap((prefix) => this.#names.map((name) => prefix + name));
    const [first = ''] = variables;
    if (!this.#session.hasVariable(KEPT + first)) {
      const values = this.#session.read(variables);
      this.#session.declare(prefixed(KEPT, values));
      tf.dispose(Object.values(values));
    }
    if (!this.#session.has(KEEP)) {
      this.#session.define(KEEP, {}, ({ read }) => ({
        outputs: { done: tf.scalar(0) },
        endings: {
          keep: variables.map((name) => assign(KEPT + name, read(name))),
          restore: variables.map((name) => assign(name, read(KEPT + name))),
        },
      }));
    }
    tf.tidy(() => this.#session.run(KEEP, {}, 'keep'));
  }

  #restore(updates: number): void {
    this.#forgetRead();
    tf.tidy(() => this.#session.run(KEEP, {}, 'restore'));
    this.#updates = updates;
    this.#broken = false;
  }

  #forgetRead(): void {
    if (this.#weights !== undefined) tf.dispose(Object.values(this.#weights));
    this.#weights = undefined;
  }

  /** By the weights' own names; kept whatever tidy this happens in. */
  #keptRead(prefix: string): NamedTensors {
    const values = this.#session.read(this.#names.map((name) => prefix + name));
    return Object.fromEntries(this.#names.map((name) => [name, tf.keep(values[prefix + name] as tf.Tensor)]));
  }
}

interface Feeds extends Omit<BatchTensors, 'masks'> {
  readonly maskRows: tf.Tensor2D;
  readonly maskIndex: tf.Tensor1D;
  readonly [name: string]: tf.Tensor;
}

/** The padded batch as tensors, disposed of afterwards. */
function withFeeds<T>({ padded }: BucketedBatch, use: (feeds: Feeds) => T): T {
  return tidy(() => {
    const { rows, states, vocabulary } = padded.masks;
    const maskRows = tf.tensor2d(rows, [states, vocabulary]);
    const { masks: _, ...tensors } = batchTensors(padded, maskRows);
    return use({ ...tensors, maskRows, maskIndex: tf.tensor1d(padded.maskIndex, 'int32') });
  });
}

function gradientOf(gradients: NamedTensors, weight: string): tf.Tensor {
  const gradient = gradients[weight];
  if (gradient !== undefined) return gradient;
  throw new IsogymError('NOT_RECORDABLE', `expected a gradient of every weight, found none of ${weight}`, {
    hint: 'A weight that the loss does not use is stepped eagerly only: replay: false',
  });
}

function broken(): IsogymError {
  return new IsogymError(
    'STATE_LOST',
    'an update failed half-way inside TensorFlow: its weights are not used any more',
    {
      hint: 'isogym train --resume RUN goes on from the latest checkpoint.',
    },
  );
}

function joined(head: Float64Array, parts: readonly Float32Array[]): Float32Array {
  const out = new Float32Array(head.length + parts.reduce((n, part) => n + part.length, 0));
  out.set(head);
  let at = head.length;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

function prefixed(prefix: string, values: NamedTensors): NamedTensors {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [prefix + name, value]));
}

function mapWeights(weights: Weights, map: (w: Weights[string]) => Weights[string]): Weights {
  return Object.fromEntries(Object.entries(weights).map(([name, w]) => [name, map(w)]));
}
