/** @module The learner: what is learnt when, over the steps that hold the weights (`steps.ts`). All or nothing: a failed step leaves them as they were. */
import type { BackendName } from '../policy/backends/select.ts';
import type { NamedTensors, Weights } from '../policy/model.ts';
import type { Agent } from './agent.ts';
import type { Batch } from './batch.ts';
import type { Position } from './checkpoint.ts';
import type { Config } from './config.ts';
import type { Objective } from './part.ts';
import { RemoteSteps } from './remote-steps/remote-steps.ts';
import type { Steps, StepsSnapshot, StepsStart, UpdateStatistics } from './steps.ts';
import { stepsOf } from './steps-of.ts';

export type { UpdateStatistics } from './steps.ts';

/** All that a learner needs to go on, outside the backend. */
export interface LearnerSnapshot extends StepsSnapshot {
  readonly version: number;
}

/**
 * The learner of a run: fresh weights, or a snapshot to go on from. It replays where the backend can and `replay` does not forbid it.
 * @param apart the backend of a process of its own, in which it reinforces. Default: in this one, on the backend that is set.
 * @param phase of the run, where `start` is a snapshot. A warm start has nothing to run beside it, and happens here.
 */
export function learnerFor(
  { model, spec, temperature }: Pick<Agent, 'model' | 'spec' | 'temperature'>,
  { algorithm, optimizer, batch, replay }: Pick<Config, 'algorithm' | 'optimizer' | 'batch' | 'replay'>,
  start: LearnerStart,
  apart?: BackendName,
  phase: Position['phase'] = 'warm-start',
): Learner {
  const config = { algorithm, optimizer, temperature, microTokens: batch.microTokens };
  const here: StepsFrom = (from) => stepsOf(model, replay, from);
  if (apart === undefined) return new Learner(here, config, start);
  const there: StepsFrom = (from) => new RemoteSteps({ spec, backend: apart, replay }, from);
  return phase === 'train' ? new Learner(there, config, start) : new Learner(here, config, start, there);
}

/** Fresh weights, or what `snapshot` gave. */
export type LearnerStart = { readonly weights: Weights } | LearnerSnapshot;

export type LearnerConfig = Pick<Config, 'algorithm' | 'optimizer'> & {
  readonly temperature: number;
  readonly microTokens: number;
};

/** What holds the weights and steps them. */
type StepsFrom = (start: StepsStart) => Steps;

export class Learner {
  readonly #config: LearnerConfig;
  /** Where reinforcement happens, until it has begun. */
  #reinforcing: StepsFrom | undefined;
  #stepsFrom: StepsFrom;
  #steps: Steps;
  #version: number;
  /** By steps that are gone. */
  #recorded = 0;

  /** @param reinforcing from `beginReinforcement` on. Default: `stepsFrom` */
  constructor(stepsFrom: StepsFrom, config: LearnerConfig, start: LearnerStart, reinforcing?: StepsFrom) {
    this.#stepsFrom = stepsFrom;
    this.#reinforcing = reinforcing;
    this.#config = config;
    this.#steps = stepsFrom(start);
    this.#version = 'version' in start ? start.version : 0;
  }

  /** The current weights; the learner's own, replaced at each step. */
  get weights(): NamedTensors {
    return this.#steps.weights;
  }

  /** The same, outside the backend: nobody else's, and never changed. */
  hostWeights(): Promise<Weights> {
    return this.#steps.hostWeights();
  }

  /** Optimizer steps so far. */
  get version(): number {
    return this.#version;
  }

  /** How many shapes of a step this learner has recorded; 0 where it steps eagerly. */
  get recordings(): number {
    return this.#recorded + this.#steps.recordings;
  }

  /** Handles that TensorFlow's addon has given out in the learner's own process; null where it has none, or another backend. */
  get tensorHandles(): number | null {
    return this.#steps.tensorHandles ?? null;
  }

  /** The line between warm start and reinforcement: the optimizer forgets, and a KL penalty, if any, is anchored here. */
  async beginReinforcement(): Promise<void> {
    await this.#steps.forget();
    if (this.#config.algorithm.kl > 0) await this.#steps.anchor();
    if (this.#reinforcing === undefined) return;
    this.#stepsFrom = this.#reinforcing;
    this.#reinforcing = undefined;
    await this.through(async () => {});
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
