import { describe, expect, it } from 'vitest';
import { generator } from '../../src/records/random.ts';
import { bootstrapMean, mean, populationDeviation, wilson } from '../../src/train/statistics.ts';

describe('moments', () => {
  it('equal what is worked out by hand', () => {
    expect(mean([2, 4, 4, 4, 5, 5, 7, 9])).toBe(5);
    expect(populationDeviation([2, 4, 4, 4, 5, 5, 7, 9])).toBe(2);
  });

  it('take back the rounding of the sum: three times 0.1 has mean 0.1', () => {
    expect((0.1 + 0.1 + 0.1) / 3).not.toBe(0.1);
    expect(mean([0.1, 0.1, 0.1])).toBe(0.1);
  });

  it('keep the deviation of small differences on a large offset, where the one-pass formula loses it', () => {
    expect(populationDeviation([1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16])).toBeCloseTo(Math.sqrt(22.5), 12);
  });

  it('refuse an empty sample', () => {
    for (const of of [mean, populationDeviation]) expect(() => of([])).toThrow('at least one value');
    expect(() => wilson(0, 0)).toThrow('at least one trial');
    expect(() => bootstrapMean([], 's')).toThrow('at least one value');
  });
});

describe('wilson', () => {
  it('equals published values: 0 of 10, 1 of 10, 5 of 10', () => {
    // z² = 3.8415: 0/10 → z²/(10 + z²); the others by the formula on paper.
    expect(wilson(0, 10)).toEqual({ mean: 0, low: 0, high: expect.closeTo(0.2775, 4) });
    expect(wilson(1, 10)).toEqual({ mean: 0.1, low: expect.closeTo(0.0179, 4), high: expect.closeTo(0.4042, 4) });
    expect(wilson(5, 10)).toEqual({ mean: 0.5, low: expect.closeTo(0.2366, 4), high: expect.closeTo(0.7634, 4) });
  });

  it('equals the example of Newcombe (1998, table I): 81 of 263, and 15 of 148', () => {
    expect(wilson(81, 263)).toMatchObject({ low: expect.closeTo(0.2553, 4), high: expect.closeTo(0.3662, 4) });
    expect(wilson(15, 148)).toMatchObject({ low: expect.closeTo(0.0624, 4), high: expect.closeTo(0.1605, 4) });
  });

  it('ends exactly at 1 where all succeed, and refuses what is no count', () => {
    expect(wilson(500, 500)).toMatchObject({
      mean: 1,
      high: 1,
      low: expect.closeTo(500 / (500 + 1.959963984540054 ** 2), 12),
    });
    expect(() => wilson(3, 2)).toThrow('found 3 of 2');
    expect(() => wilson(0.5, 2)).toThrow('found 0.5 of 2');
  });
});

describe('bootstrap', () => {
  it('has no width where all values are equal, and is a function of values and seed', () => {
    expect(bootstrapMean([0.25, 0.25, 0.25], 's')).toEqual({ mean: 0.25, low: 0.25, high: 0.25 });
    const values = [1, 5, 2, 8, 3];
    expect(bootstrapMean(values, 'a')).toEqual(bootstrapMean(values, 'a'));
    expect(bootstrapMean(values, 'a')).not.toEqual(bootstrapMean(values, 'b'));
  });

  it('comes near the exact distribution of the resampled mean: two values, a binomial', () => {
    // Mean of 2 draws from {0, 1}: 0, ½, 1 with ¼, ½, ¼. The middle 40 % is ½ alone; the middle 90 % reaches 0 and 1.
    expect(bootstrapMean([0, 1], 's', { level: 0.4 })).toEqual({ mean: 0.5, low: 0.5, high: 0.5 });
    expect(bootstrapMean([0, 1], 's', { level: 0.9 })).toEqual({ mean: 0.5, low: 0, high: 1 });
  });

  it('covers the true mean about as often as it says: 500 samples of 40 uniforms', () => {
    let covered = 0;
    for (let trial = 0; trial < 500; trial++) {
      const random = generator(`sample ${trial}`);
      const values = Array.from({ length: 40 }, random);
      const { low, high } = bootstrapMean(values, `resamples ${trial}`, { resamples: 500 });
      if (low <= 0.5 && 0.5 <= high) covered++;
    }
    // 95 % nominal; three standard errors of 500 trials are 2.9 %, and the percentile interval is known to be a little narrow at 40.
    expect(covered / 500).toBeGreaterThan(0.91);
    expect(covered / 500).toBeLessThan(0.98);
  });
});
