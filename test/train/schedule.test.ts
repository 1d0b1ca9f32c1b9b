import { describe, expect, it } from 'vitest';
import { learningRate } from '../../src/train/schedule.ts';

const rates = (schedule: { warmup: number; decay: number }) =>
  Array.from({ length: 6 }, (_, step) => learningRate(step, { peak: 6, steps: 6, ...schedule }));

describe('learningRate', () => {
  it('is constant without rise and fall', () => {
    expect(rates({ warmup: 0, decay: 0 })).toEqual([6, 6, 6, 6, 6, 6]);
  });

  it('rises over the first steps and loses none of them', () => {
    expect(rates({ warmup: 3, decay: 0 })).toEqual([2, 4, 6, 6, 6, 6]);
  });

  it('falls over the last share of the steps and ends above 0', () => {
    expect(rates({ warmup: 0, decay: 0.5 })).toEqual([6, 6, 6, 6, 4, 2]);
    expect(rates({ warmup: 0, decay: 1 })).toEqual([6, 5, 4, 3, 2, 1]);
  });

  it('takes the lower of the two where they overlap', () => {
    expect(rates({ warmup: 6, decay: 1 })).toEqual([1, 2, 3, 3, 2, 1]);
  });
});
