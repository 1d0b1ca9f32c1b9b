/** @module The learner: the weights and the optimizer's memory, and the steps that change them. All or nothing: a failed step leaves both as they were. */
import * as tf from '@tensorflow/tfjs';
import type { HostTensor, Model, NamedTensors, Weights } from '../policy/model.ts';
import { zeroMoments } from './adamw.ts';
import type { Agent } from './agent.ts';
import { type Batch, paddingShare, split } from './batch.ts';
import type { Config } from './config.ts';
import {
  disposeState,
  initialState,
  type Objective,
  readStatistics,
  type StepStatistics,
  type TrainState,
  trainStep,
} from './step.ts';

/** What one batch did to the weights. */
export interface UpdateStatistics {
  readonly microBatches: number;
  /** Share of padding among the tokens that the model was given, in [0, 1). */
  readonly paddingShare: number;
  /** One for each epoch over the batch. The first one's drift is that of an on-policy batch: its ratios are 1 but for rounding. */
  readonly steps: readonly StepStatistics[];
}

/** All that a learner needs to go on, outside the backend. */
export interface LearnerSnapshot {
  readonly weights: Weights;
  readonly m: Weights;
  readonly v: Weights;
  /** How often each weight has been updated. */
  readonly updates: Readonly<Record<string, number>>;
  readonly version: number;
  /** Where the KL penalty is anchored. */
  readonly reference: Weights | null;
}

/** The learner of a run: fresh weights, or a snapshot to go on from. */
export function learnerFor(
  { model, temperature }: Pick<Agent, 'model' | 'temperature'>,
  { algorithm, optimizer, batch }: Pick<Config, 'algorithm' | 'optimizer' | 'batch'>,
  start: { readonly weights: Weights } | LearnerSnapshot,
): Learner {
  return new Learner(model, { algorithm, optimizer, temperature, microTokens: batch.microTokens }, start);
}

export type LearnerConfig = Pick<Config, 'algorithm' | 'optimizer'> & {
  readonly temperature: number;
  readonly microTokens: number;
};

export class Learner {
  readonly #model: Model;
  readonly #config: LearnerConfig;
  #state: TrainState;
  #version: number;
  #reference: NamedTensors | undefined;

  /** @param start fresh weights, or what `snapshot` gave. */
  constructor(model: Model, config: LearnerConfig, start: { readonly weights: Weights } | LearnerSnapshot) {
    this.#model = model;
    this.#config = config;
    const weights = onDevice(start.weights);
    this.#state = initialState(weights);
    this.#version = 0;
    if (!('m' in start)) return;
    tf.dispose([Object.values(this.#state.moments.m), Object.values(this.#state.moments.v)].flat());
    this.#state = { weights, moments: { m: onDevice(start.m), v: onDevice(start.v), updates: start.updates } };
    this.#version = start.version;
    this.#reference = start.reference === null ? undefined : onDevice(start.reference);
  }

  /** The current weights; the learner's own, replaced at each step. */
  get weights(): NamedTensors {
    return this.#state.weights;
  }

  /** Optimizer steps so far. */
  get version(): number {
    return this.#version;
  }

  /** The line between warm start and reinforcement: the optimizer forgets, and a KL penalty, if any, is anchored here. */
  beginReinforcement(): void {
    const { m, v } = this.#state.moments;
    this.#state = { weights: this.#state.weights, moments: zeroMoments(this.#state.weights) };
    tf.dispose([Object.values(m), Object.values(v)].flat());
    if (this.#config.algorithm.kl > 0) {
      this.#reference = Object.fromEntries(Object.entries(this.weights).map(([name, w]) => [name, tf.clone(w)]));
    }
  }

  /** `algorithm.epochs` policy-gradient steps on one batch. */
  reinforce(batch: Batch, learningRate: number): Promise<UpdateStatistics> {
    const { clipLow, clipHigh, entropy, kl, epochs } = this.#config.algorithm;
    const { temperature } = this.#config;
    const objective = {
      kind: 'policy',
      temperature,
      clipLow,
      clipHigh,
      entropyCoefficient: entropy,
      klCoefficient: kl,
    } as const;
    return this.#update(batch, objective, learningRate, epochs);
  }

  /** One cross-entropy step. */
  supervise(batch: Batch, learningRate: number): Promise<UpdateStatistics> {
    return this.#update(batch, { kind: 'supervised', temperature: this.#config.temperature }, learningRate, 1);
  }

  async snapshot(): Promise<LearnerSnapshot> {
    const { weights, moments } = this.#state;
    return {
      weights: await onHost(weights),
      m: await onHost(moments.m),
      v: await onHost(moments.v),
      updates: moments.updates,
      version: this.#version,
      reference: this.#reference === undefined ? null : await onHost(this.#reference),
    };
  }

  dispose(): void {
    disposeState(this.#state);
    if (this.#reference !== undefined) tf.dispose(Object.values(this.#reference));
  }

  async #update(batch: Batch, objective: Objective, learningRate: number, epochs: number): Promise<UpdateStatistics> {
    const batches = split(batch, this.#config.microTokens);
    const reference = objective.kind === 'policy' ? this.#reference : undefined;
    const steps: StepStatistics[] = [];
    let state = this.#state;
    try {
      for (let epoch = 0; epoch < epochs; epoch++) {
        const before = state;
        const { optimizer } = this.#config;
        const shared = { batches, objective, ...(reference && { reference }) };
        const { state: after, packed } = trainStep({
          ...shared,
          model: this.#model,
          state: before,
          optimizer: { ...optimizer, learningRate },
          maxNorm: optimizer.clipNorm,
        });
        state = after;
        if (before !== this.#state) disposeState(before);
        steps.push(await readStatistics(packed, shared));
      }
    } catch (error) {
      if (state !== this.#state) disposeState(state);
      throw error;
    }
    disposeState(this.#state);
    this.#state = state;
    this.#version += epochs;
    return { microBatches: batches.length, paddingShare: paddingShare(batches), steps };
  }
}

function onDevice(weights: Weights): NamedTensors {
  return Object.fromEntries(
    Object.entries(weights).map(([name, { data, shape }]) => [name, tf.tensor(data, [...shape])]),
  );
}

async function onHost(tensors: NamedTensors): Promise<Weights> {
  const out: Record<string, HostTensor> = {};
  for (const [name, tensor] of Object.entries(tensors)) {
    out[name] = { shape: tensor.shape, data: (await tensor.data()) as Float32Array };
  }
  return out;
}
