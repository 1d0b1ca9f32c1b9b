/** @module The learning rate as a function of the step: a linear rise, a plateau, a linear fall. */

export interface Schedule {
  /** The plateau's learning rate. */
  readonly peak: number;
  /** Optimizer steps in all. */
  readonly steps: number;
  /** Steps of the rise; 0 for none. The first step already takes peak / warmup, so that none is lost. */
  readonly warmup: number;
  /** The share of `steps`, in [0, 1], over which the rate falls to 0 at the end; 0 for none. The last step still takes more than 0. */
  readonly decay: number;
}

/** The learning rate of step number `step` in [0, steps). Where rise and fall overlap, the lower of the two. */
export function learningRate(step: number, { peak, steps, warmup, decay }: Schedule): number {
  const rise = warmup > 0 ? (step + 1) / warmup : 1;
  const fall = decay > 0 ? (steps - step) / (steps * decay) : 1;
  return peak * Math.max(0, Math.min(1, rise, fall));
}
