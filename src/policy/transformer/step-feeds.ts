/** @module What a recorded decode step is fed, from the rows of the step and the slots that they have in the caches. */
import * as tf from '@tensorflow/tfjs';

/** One row of a step. */
export interface StepRow {
  readonly slot: number;
  /** What the slot is fed: at most the step's T, and at least one where the row is sampled. */
  readonly tokens: readonly number[];
  /** Of the grammar, where the token after `tokens` is sampled. */
  readonly state: number;
  /** In [0, 1). */
  readonly uniform: number;
}

export interface StepShape {
  /** T: tokens of each row. */
  readonly tokens: number;
  /** C: columns of a slot; the last is scratch, where padding is written. */
  readonly columns: number;
  readonly kvHeads: number;
  /** The slot of each row [B]: a slot without a `StepRow` is fed padding alone. */
  readonly places: readonly number[];
  /** Whether `places` are all slots, in order. */
  readonly whole: boolean;
  /** Tokens that a slot has been fed. */
  readonly lengthOf: (slot: number) => number;
  /** The table's row for a state. */
  readonly tableRow: (state: number) => number;
}

/** The greatest float32 below 1. */
const BELOW_ONE = 1 - 2 ** -24;

/** The tensors of `SampledInput`: `last` only where T > 1, `slots` only where not `whole`. The caller's. */
export function stepFeeds(
  rows: readonly StepRow[],
  { tokens: T, columns: C, kvHeads, places, whole, lengthOf, tableRow }: StepShape,
): Record<string, tf.Tensor> {
  const bySlot = new Map(rows.map((row) => [row.slot, row]));
  const B = places.length;
  const ids = new Int32Array(B * T);
  const positions = new Int32Array(B * T);
  const write = new Int32Array(B * kvHeads * T);
  const last = new Int32Array(B);
  const states = new Int32Array(B);
  const uniforms = new Float32Array(B);
  for (const [b, slot] of places.entries()) {
    const row = bySlot.get(slot);
    const tokens = row?.tokens ?? [];
    const length = lengthOf(slot);
    for (let t = 0; t < T; t++) {
      const real = t < tokens.length;
      ids[b * T + t] = tokens[t] ?? 0;
      positions[b * T + t] = real ? length + t : 0;
      const column = real ? length + t : C - 1;
      for (let k = 0; k < kvHeads; k++) write[(b * kvHeads + k) * T + t] = (slot * kvHeads + k) * C + column;
    }
    last[b] = b * T + Math.max(0, tokens.length - 1);
    states[b] = row === undefined ? 0 : tableRow(row.state);
    uniforms[b] = Math.min(row?.uniform ?? 0, BELOW_ONE);
  }
  const int = (values: Int32Array) => tf.tensor1d(values, 'int32');
  return {
    ids: int(ids),
    positions: int(positions),
    write: int(write),
    states: int(states),
    uniforms: tf.tensor1d(uniforms),
    ...(T > 1 ? { last: int(last) } : {}),
    ...(whole ? {} : { slots: int(Int32Array.from(places)) }),
  };
}
