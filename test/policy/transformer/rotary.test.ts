import * as tf from '@tensorflow/tfjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fusedWidth } from '../../../src/policy/transformer/config.ts';
import { rotaryTables, rotate } from '../../../src/policy/transformer/rotary.ts';
import { generator } from '../../../src/records/random.ts';
import { SMALL, use } from './fixtures.ts';

describe('rotary positions', () => {
  beforeEach(async () => {
    await use('cpu');
    tf.engine().startScope();
  });
  afterEach(() => tf.engine().endScope());

  const random = generator('rotary');
  const columns = fusedWidth(SMALL);
  const fused = Float32Array.from({ length: columns }, () => 2 * random() - 1);
  const LENGTH = 40;

  /** The same fused projection, turned at every position: [LENGTH][columns]. */
  function turned(): number[][] {
    const { cos, sin } = rotaryTables(SMALL, LENGTH);
    const y = tf.tile(tf.tensor(fused, [1, 1, columns]), [1, LENGTH, 1]);
    const out = rotate(y, tf.tensor2d(cos, [LENGTH, columns]), tf.tensor2d(sin, [LENGTH, columns]), SMALL.headWidth);
    return (out.arraySync() as number[][][])[0]!;
  }

  it('make a score depend on the distance of query and key alone', () => {
    const rows = turned();
    const head = (row: number[], h: number) => row.slice(h * SMALL.headWidth, (h + 1) * SMALL.headWidth);
    const score = (p: number, s: number) =>
      head(rows[p]!, 1).reduce((sum, v, i) => sum + v * head(rows[s]!, SMALL.heads)[i]!, 0);
    const distances = [0, 1, 3, 9].map((distance) => score(distance, 0));
    for (const [i, distance] of [0, 1, 3, 9].entries()) {
      for (const at of [1, 5, 30]) expect(score(at + distance, at)).toBeCloseTo(distances[i]!, 6);
    }
    expect(new Set(distances.map((d) => d.toFixed(4))).size).toBe(4);
  });

  it('leave the values as they are, and at position 0 everything but for the scale of the queries', () => {
    const rows = turned();
    const values = (SMALL.heads + SMALL.kvHeads) * SMALL.headWidth;
    expect(rows[17]!.slice(values)).toEqual([...fused.slice(values)]);
    const queries = SMALL.heads * SMALL.headWidth;
    expect(rows[0]!.slice(queries)).toEqual([...fused.slice(queries)]);
    for (const [i, value] of rows[0]!.slice(0, queries).entries()) {
      expect(value).toBeCloseTo(fused[i]! / Math.sqrt(SMALL.headWidth), 6);
    }
  });
});
