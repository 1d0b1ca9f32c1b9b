/** @module The learner: what is learnt when, over the steps that hold the weights (`steps.ts`). All or nothing: a failed step leaves them as they were. */
import type { Model, NamedTensors, Weights } from '../policy/model.ts';
import { canReplay } from '../policy/replay/session.ts';
import type { Agent } from './agent.ts';
import type { Batch } from './batch.ts';
import type { Config } from './config.ts';
import { EagerSteps } from './eager-steps.ts';
import type { Objective } from './part.ts';
import { ReplayedSteps } from './replayed-steps.ts';
import type { Steps, StepsSnapshot, UpdateStatistics } from './steps.ts';

export type { UpdateStatistics } from './steps.ts';

/** All that a learner needs to go on, outside the backend. */
export interface LearnerSnapshot extends StepsSnapshot {
  readonly version: number;
}

/** The learner of a run: fresh weights, or a snapshot to go on from. It replays where the backend can and `replay` does not forbid it. */
export function learnerFor(
  { model, temperature }: Pick<Agent, 'model' | 'temperature'>,
  { algorithm, optimizer, batch, replay }: Pick<Config, 'algorithm' | 'optimizer' | 'batch' | 'replay'>,
  start: { readonly weights: Weights } | LearnerSnapshot,
): Learner {
  const config = { algorithm, optimizer, temperature, microTokens: batch.microTokens, replay: replay && canReplay() };
  return new Learner(model, config, start);
}

export type LearnerConfig = Pick<Config, 'algorithm' | 'optimizer'> & {
  readonly temperature: number;
  readonly microTokens: number;
  /** Whether steps are recorded and replayed as graphs: only where the backend is `native` or `cuda`. */
  readonly replay?: boolean;
};

export class Learner {
  readonly #model: Model;
  readonly #config: LearnerConfig;
  #steps: Steps;
  #version: number;
  /** By steps that are gone. */
  #recorded = 0;

  /** @param start fresh weights, or what `snapshot` gave. */
  constructor(model: Model, config: LearnerConfig, start: { readonly weights: Weights } | LearnerSnapshot) {
    this.#model = model;
    this.#config = config;
    this.#steps = this.#stepsFrom(start);
    this.#version = 'version' in start ? start.version : 0;
  }

  /** The current weights; the learner's own, replaced at each step. */
  get weights(): NamedTensors {
    return this.#steps.weights;
  }

  /** Optimizer steps so far. */
  get version(): number {
    return this.#version;
  }

  /** How many shapes of a step this learner has recorded; 0 where it steps eagerly. */
  get recordings(): number {
    return this.#recorded + this.#steps.recordings;
  }

  /** The line between warm start and reinforcement: the optimizer forgets, and a KL penalty, if any, is anchored here. */
  beginReinforcement(): void {
    this.#steps.forget();
    if (this.#config.algorithm.kl > 0) this.#steps.anchor();
  }

  /**
   * `algorithm.epochs` policy-gradient steps on one batch.
   * @param onPolicy whether all of it was sampled with the weights as they are. Default: not looked at.
   */
  reinforce(batch: Batch, learningRate: number, onPolicy = false): Promise<UpdateStatistics> {
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
    return this.#update(batch, objective, learningRate, epochs, onPolicy);
  }

  /** One cross-entropy step. */
  supervise(batch: Batch, learningRate: number): Promise<UpdateStatistics> {
    return this.#update(batch, { kind: 'supervised', temperature: this.#config.temperature }, learningRate, 1, false);
  }

  async snapshot(): Promise<LearnerSnapshot> {
    return { ...(await this.#steps.snapshot()), version: this.#version };
  }

  /** Keeps all that it knows outside the backend while `renew` begins that anew; goes on with the same bits. */
  async through(renew: () => Promise<void>): Promise<void> {
    const snapshot = await this.snapshot();
    this.#recorded += this.#steps.recordings;
    this.#steps.dispose();
    await renew();
    this.#steps = this.#stepsFrom(snapshot);
  }

  dispose(): void {
    this.#steps.dispose();
  }

  #stepsFrom(start: { readonly weights: Weights } | LearnerSnapshot): Steps {
    return this.#config.replay === true ? new ReplayedSteps(this.#model, start) : new EagerSteps(this.#model, start);
  }

  async #update(
    batch: Batch,
    objective: Objective,
    learningRate: number,
    epochs: number,
    onPolicy: boolean,
  ): Promise<UpdateStatistics> {
    const { optimizer, microTokens } = this.#config;
    const statistics = await this.#steps.update({
      batch,
      microTokens,
      objective,
      optimizer: { ...optimizer, learningRate },
      maxNorm: optimizer.clipNorm,
      epochs,
      onPolicy,
    });
    this.#version += epochs;
    return statistics;
  }
}
