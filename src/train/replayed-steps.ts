/**
 * @module Steps as recorded graphs, on `native` and `cuda`: weights, moments and gradients live in a session, and a step is a call
 * of it for each micro-batch's gradients, the last of which tells their norm, and, once all of it is known to be finite, one for the update.
 */
import * as tf from '@tensorflow/tfjs';
import type { Model, NamedTensors, Weights } from '../policy/model.ts';
import { Session } from '../policy/replay/session.ts';
import { IsogymError, inputError } from '../records/errors.ts';
import type { AdamWOptions } from './adamw.ts';
import { type BucketedBatch, bucketed, bucketPadding } from './buckets.ts';
import { onDevice, onHost } from './eager-steps.ts';
import type { Objective } from './part.ts';
import { HEAD, NORM, type StepStatistics, stepStatistics } from './step.ts';
import {
  applyFeeds,
  defineApply,
  defineGradients,
  defineKeep,
  G,
  KEEP,
  KEPT,
  M,
  R,
  V,
  W,
  withFeeds,
} from './step-functions.ts';
import type { Steps, StepsSnapshot, StepsStart, UpdateOptions, UpdateStatistics } from './steps.ts';

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

  constructor(model: Model, start: StepsStart) {
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

  hostWeights(): Promise<Weights> {
    return onHost(this.weights);
  }

  async update(options: UpdateOptions): Promise<UpdateStatistics> {
    const { batch, microTokens, objective, optimizer, maxNorm, epochs, onPolicy = false } = options;
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
      for (let epoch = 0; epoch < epochs; epoch++) {
        steps.push(this.#step(parts, objective, optimizer, maxNorm, onPolicy && epoch === 0));
      }
    } catch (error) {
      if (epochs > 1 && (this.#updates > updates || this.#broken)) this.#restore(updates);
      throw error;
    }
    return { microBatches: parts.length, paddingShare: bucketPadding(parts), steps };
  }

  async forget(): Promise<void> {
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

  async anchor(): Promise<void> {
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
    onPolicy: boolean,
  ): StepStatistics {
    if (this.#broken) throw broken();
    const reference = objective.kind === 'policy' && this.#hasReference;
    // All that is new is recorded before anything is run: each new function after that would mean another session.
    const applying = defineApply(this.#session, this.#ranks, optimizer);
    const of = { model: this.#model, weights: this.#names };
    const names = parts.map((part) => defineGradients(this.#session, of, part, { objective, reference }));
    const head = new Float64Array(HEAD);
    const logprobs: Float32Array[] = [];
    for (const [i, part] of parts.entries()) {
      const packed = withFeeds(part, (feeds) => this.#gradients(names[i] ?? '', feeds, i === 0 ? 'first' : 'more'));
      for (let n = 0; n < NORM; n++) head[n] = (head[n] ?? 0) + (packed[n] ?? Number.NaN);
      // Of all so far.
      head[NORM] = packed[NORM] ?? Number.NaN;
      logprobs.push(packed.subarray(HEAD, HEAD + part.real.targets.length));
    }
    const statistics = stepStatistics(joined(head, logprobs), {
      batches: parts.map(({ real }) => real),
      objective,
      reference,
      onPolicy,
    });
    const { gradientNorm } = statistics;
    this.#apply(
      applying,
      optimizer,
      maxNorm === Number.POSITIVE_INFINITY ? 1 : maxNorm / Math.max(gradientNorm, maxNorm),
    );
    return statistics;
  }

  #gradients(name: string, feeds: NamedTensors, ending: 'first' | 'more'): Float32Array {
    return tf.tidy(() => this.#session.run(name, feeds, ending, [ending])[ending]?.dataSync() as Float32Array);
  }

  #apply(name: string, optimizer: AdamWOptions, scale: number): void {
    const t = this.#updates + 1;
    this.#forgetRead();
    this.#broken = true;
    // Gives nothing back, as a tidy keeps what is.
    tf.tidy(() => {
      this.#session.run(name, applyFeeds(optimizer, t, scale), 'apply');
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
    defineKeep(this.#session, variables);
    this.#runKeep('keep');
  }

  #restore(updates: number): void {
    this.#forgetRead();
    this.#runKeep('restore');
    this.#updates = updates;
    this.#broken = false;
  }

  #runKeep(ending: 'keep' | 'restore'): void {
    tf.dispose(Object.values(this.#session.run(KEEP, {}, ending)));
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
