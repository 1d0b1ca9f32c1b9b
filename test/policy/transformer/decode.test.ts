import * as tf from '@tensorflow/tfjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Weights } from '../../../src/policy/model.ts';
import { leave, type Place } from '../../../src/policy/transformer/cache-block.ts';
import { DecodeBatch, Decoder } from '../../../src/policy/transformer/decoder.ts';
import { transformer } from '../../../src/policy/transformer/model.ts';
import { BACKENDS, largestDifference, SMALL, tensors, tokenRows, use, wildWeights } from './fixtures.ts';

const V = SMALL.vocabulary;
/** Logits of ordinary size, as in a trained model: the tolerances are absolute. */
const WEIGHTS = wildWeights(SMALL, 'decode', 0.35);

/** The full pass's logits [T][V] of one sequence. */
function full(weights: Weights, ids: readonly number[]): Float32Array[] {
  const flat = tf.tidy(() =>
    transformer(SMALL)
      .logits(tensors(weights), tokenRows([ids]))
      .dataSync(),
  ) as Float32Array;
  return ids.map((_, t) => flat.slice(t * V, (t + 1) * V));
}

describe.each(BACKENDS)('on $backend cached decoding', ({ backend, tolerance }) => {
  let before = 0;
  beforeEach(async () => {
    await use(backend);
    before = tf.memory().numTensors;
  });
  afterEach(() => expect(tf.memory().numTensors).toBe(before));

  function decoder(): Decoder {
    const weights = tensors(WEIGHTS);
    const made = new Decoder(SMALL, weights);
    tf.dispose(weights as tf.NamedTensorMap);
    return made;
  }

  /** Feeds every row its chunks in turn and compares the logits after each with the full pass. */
  async function follow(batch: DecodeBatch, texts: number[][], feeds: readonly (readonly (readonly number[])[])[]) {
    for (const chunks of feeds) {
      const logits = await batch.feed(chunks);
      for (const [r, chunk] of chunks.entries()) {
        if (chunk.length === 0) continue;
        texts[r]!.push(...chunk);
        const expected = full(WEIGHTS, texts[r]!).at(-1)!;
        expect(largestDifference(logits.subarray(r * V, (r + 1) * V), expected)).toBeLessThan(tolerance);
      }
    }
  }

  it('equals the full pass for rows of unequal length, chunks and waiting rows', async () => {
    const made = decoder();
    const batch = new DecodeBatch(made, [null, null, null]);
    const texts: number[][] = [[], [], []];
    await follow(batch, texts, [
      [[3, 1, 4], [5], [9, 2, 6, 5]],
      [[3], [8], [7]],
      [[], [9, 9], [1]],
      [[2, 7], [], [10]],
      [[1], [4], [0]],
    ]);
    expect(texts.map((text) => text.length)).toEqual([7, 5, 8]);
    batch.end();
    made.dispose();
  });

  it('equals the full pass after rows have gone and in a later batch in another order, joined by new rows', async () => {
    const made = decoder();
    const first = new DecodeBatch(made, [null, null, null]);
    const texts: number[][] = [[], [], []];
    await follow(first, texts, [
      [[3, 1, 4], [5], [9, 2, 6, 5]],
      [[3], [8], []],
    ]);
    const parked = first.place(1);
    first.keep([2, 0]);
    const [one, two, three] = [texts[0]!, texts[1]!, texts[2]!];
    await follow(first, [three, one], [[[7, 7], [1]]]);
    const places: (Place | null)[] = [first.place(1), null, parked, first.place(0)];
    first.end();
    const second = new DecodeBatch(made, places);
    expect(places.map((_, r) => second.length(r))).toEqual([5, 0, 2, 6]);
    for (const place of places) if (place !== null) leave(place.block);
    await follow(
      second,
      [one, [], two, three],
      [
        [[2], [6, 1], [0], [10]],
        [[8], [8], [8], [8]],
      ],
    );
    second.end();
    made.dispose();
  });

  it('grows its position tables past their first length', async () => {
    const made = decoder();
    const batch = new DecodeBatch(made, [null]);
    const long = Array.from({ length: 70 }, (_, i) => (i * 7) % V);
    await follow(batch, [[]], [[long], [[1]]]);
    batch.end();
    made.dispose();
  });
});
