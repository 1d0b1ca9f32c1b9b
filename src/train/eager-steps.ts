/** @module Steps operation by operation, on any backend: the oracle of the recorded ones. */
import * as tf from '@tensorflow/tfjs';
import type { HostTensor, Model, NamedTensors, Weights } from '../policy/model.ts';
import { zeroMoments } from './adamw.ts';
import { paddingShare, split } from './batch.ts';
import { disposeState, initialState, readStatistics, type StepStatistics, type TrainState, trainStep } from './step.ts';
import type { Steps, StepsSnapshot, StepsStart, UpdateOptions, UpdateStatistics } from './steps.ts';

export class EagerSteps implements Steps {
  readonly recordings = 0;
  readonly #model: Model;
  #state: TrainState;
  #reference: NamedTensors | undefined;

  constructor(model: Model, start: StepsStart) {
    this.#model = model;
    const weights = onDevice(start.weights);
    if (!('m' in start)) {
      this.#state = initialState(weights);
      return;
    }
    this.#state = { weights, moments: { m: onDevice(start.m), v: onDevice(start.v), updates: start.updates } };
    this.#reference = start.reference === null ? undefined : onDevice(start.reference);
  }

  get weights(): NamedTensors {
    return this.#state.weights;
  }

  hostWeights(): Promise<Weights> {
    return onHost(this.weights);
  }

  async update({
    batch,
    microTokens,
    objective,
    optimizer,
    maxNorm,
    epochs,
    onPolicy = false,
  }: UpdateOptions): Promise<UpdateStatistics> {
    const batches = split(batch, microTokens);
    const reference = objective.kind === 'policy' ? this.#reference : undefined;
    const steps: StepStatistics[] = [];
    let state = this.#state;
    try {
      for (let epoch = 0; epoch < epochs; epoch++) {
        const before = state;
        const shared = { batches, objective, ...(reference && { reference }) };
        const { state: after, packed } = trainStep({
          ...shared,
          model: this.#model,
          state: before,
          optimizer,
          maxNorm,
        });
        state = after;
        if (before !== this.#state) disposeState(before);
        steps.push(await readStatistics(packed, { ...shared, onPolicy: onPolicy && epoch === 0 }));
      }
    } catch (error) {
      if (state !== this.#state) disposeState(state);
      throw error;
    }
    disposeState(this.#state);
    this.#state = state;
    return { microBatches: batches.length, paddingShare: paddingShare(batches), steps };
  }

  async forget(): Promise<void> {
    const { m, v } = this.#state.moments;
    this.#state = { weights: this.#state.weights, moments: zeroMoments(this.#state.weights) };
    tf.dispose([Object.values(m), Object.values(v)].flat());
  }

  async anchor(): Promise<void> {
    if (this.#reference !== undefined) tf.dispose(Object.values(this.#reference));
    this.#reference = Object.fromEntries(Object.entries(this.weights).map(([name, w]) => [name, tf.clone(w)]));
  }

  async snapshot(): Promise<StepsSnapshot> {
    const { weights, moments } = this.#state;
    return {
      weights: await onHost(weights),
      m: await onHost(moments.m),
      v: await onHost(moments.v),
      updates: moments.updates,
      reference: this.#reference === undefined ? null : await onHost(this.#reference),
    };
  }

  dispose(): void {
    disposeState(this.#state);
    if (this.#reference !== undefined) tf.dispose(Object.values(this.#reference));
  }
}

/** New tensors, the caller's. */
export function onDevice(weights: Weights): NamedTensors {
  return Object.fromEntries(
    Object.entries(weights).map(([name, { data, shape }]) => [name, tf.tensor(data, [...shape])]),
  );
}

export async function onHost(tensors: NamedTensors): Promise<Weights> {
  const out: Record<string, HostTensor> = {};
  for (const [name, tensor] of Object.entries(tensors)) {
    out[name] = { shape: tensor.shape, data: (await tensor.data()) as Float32Array };
  }
  return out;
}
