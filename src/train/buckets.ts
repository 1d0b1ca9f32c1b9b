/** @module Micro-batches in few shapes: a recorded step is valid for one shape, so ragged work is padded up to a bucket. Padding changes no loss, no gradient and no figure. */
import { type Batch, FORBIDDEN, layOut, widthOf } from './batch.ts';

/** A micro-batch padded to its bucket: B rows of width T, N scored tokens and S mask rows. */
export interface Bucket {
  readonly rows: number;
  readonly width: number;
  readonly scored: number;
  readonly states: number;
}

export interface BucketedBatch {
  readonly bucket: Bucket;
  /** What is real, without padding. */
  readonly real: Batch;
  /** The same padded; `rows` are the real ones alone. */
  readonly padded: Batch & Required<Pick<Batch, 'masks'>>;
}

/**
 * The least size that is not below n ≥ 1. There are 2^k sizes to an octave: of k = 2 that is 1, 2, …, 8, 10, 12, 14, 16, 20, 24, …,
 * at most a fifth of each padding, and a tenth in the mean.
 */
export function bucketOf(n: number, k = 2): number {
  const step = 2 ** Math.max(0, Math.ceil(Math.log2(n)) - 1 - k);
  return Math.ceil(n / step) * step;
}

/** The greatest of the sizes that is not above n ≥ 1. */
function bucketBelow(n: number): number {
  const above = bucketOf(n);
  if (above === n) return n;
  return above - 2 ** Math.max(0, Math.ceil(Math.log2(n)) - 3);
}

/**
 * Sizes to an octave of scored tokens, as a power of 2: they vary from batch to batch and cost little more than the head. Rows and
 * their width, which cost the most, have the four of `bucketOf`.
 */
const SCORED = 0;

/**
 * Cuts a batch into micro-batches of at most `maxTokens` = B·T padded tokens each (one row that is longer stands alone), longest rows
 * first, each padded to its bucket. A function of the batch alone.
 *
 * A padding token is scored where only one token is allowed, and that one is its target: logprob 0, entropy 0, gradient 0; its
 * advantage is 0, and so is its divergence from any reference.
 * @param vocabulary number of logits
 */
export function bucketed(batch: Batch, maxTokens: number, vocabulary: number): readonly BucketedBatch[] {
  const sorted = batch.rows.toSorted((a, b) => b.ids.length - a.ids.length);
  const parts: BucketedBatch[] = [];
  for (let from = 0; from < sorted.length; ) {
    const width = bucketOf(widthOf(sorted.slice(from, from + 1)));
    const room = bucketBelow(Math.max(1, Math.floor(maxTokens / width)));
    const rows = sorted.slice(from, from + room);
    parts.push(pad(layOut(rows, batch.masks, batch.denominator), bucketOf(rows.length), width, vocabulary));
    from += rows.length;
  }
  return parts;
}

/** The share of padding among the tokens of these buckets, in [0, 1). */
export function bucketPadding(parts: readonly BucketedBatch[]): number {
  const real = parts.reduce((sum, { real }) => sum + real.rows.reduce((n, row) => n + row.ids.length, 0), 0);
  return 1 - real / parts.reduce((sum, { bucket }) => sum + bucket.rows * bucket.width, 0);
}

function pad(real: Batch, rows: number, width: number, vocabulary: number): BucketedBatch {
  const scored = bucketOf(real.targets.length, SCORED);
  // Without a grammar there is one row, in which all is allowed. The padding's row comes after the real ones.
  const states = real.masks?.states ?? 1;
  const all = 2 ** Math.ceil(Math.log2(states + 1));
  const masks = new Float32Array(all * vocabulary);
  if (real.masks !== undefined) masks.set(real.masks.rows);
  masks.fill(FORBIDDEN, states * vocabulary + 1, (states + 1) * vocabulary);
  const ids = new Int32Array(rows * width);
  for (const [b, row] of real.rows.entries()) ids.set(row.ids, b * width);
  const ints = (values: Int32Array, filler: number) => {
    const out = new Int32Array(scored).fill(filler);
    out.set(values);
    return out;
  };
  const floats = (values: Float32Array) => {
    const out = new Float32Array(scored);
    out.set(values);
    return out;
  };
  const moved = real.scored.map((flat) => Math.floor(flat / real.width) * width + (flat % real.width));
  const padded = {
    rows: real.rows,
    width,
    ids,
    scored: ints(moved, 0),
    targets: ints(real.targets, 0),
    behaviour: floats(real.behaviour),
    advantages: floats(real.advantages),
    maskIndex: ints(real.maskIndex, states),
    masks: { rows: masks, states: all, vocabulary },
    denominator: real.denominator,
  };
  return { bucket: { rows, width, scored, states: all }, real, padded };
}
