import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FORBIDDEN } from '../../src/train/batch.ts';
import { bucketed, bucketOf, bucketPadding } from '../../src/train/buckets.ts';
import { raggedBatch } from './replay-cases.ts';

describe('bucketOf', () => {
  test('has four sizes to an octave from 4 on', () => {
    expect([...new Set(Array.from({ length: 64 }, (_, i) => bucketOf(i + 1)))]).toEqual([
      ...[1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64],
    ]);
  });

  test('is never smaller, never a quarter larger, and of a bucket itself (property)', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e6 }), (n) => {
        const bucket = bucketOf(n);
        expect(bucket).toBeGreaterThanOrEqual(n);
        expect(bucket).toBeLessThan(Math.max(n + 1, 1.25 * n));
        expect(bucketOf(bucket)).toBe(bucket);
      }),
    );
  });
});

describe('bucketed', () => {
  const batch = raggedBatch({ lengths: [5, 40, 17, 9, 33, 12, 30, 8, 21], vocabulary: 11, states: 3, seed: 'a' });

  test('keeps every row and every scored token once, within the bound of tokens', () => {
    const parts = bucketed(batch, 100, 11);
    expect(parts.flatMap(({ real }) => real.rows.map(({ episode }) => episode)).sort()).toEqual(
      batch.rows.map(({ episode }) => episode).sort(),
    );
    for (const { bucket, real, padded } of parts) {
      expect(bucket.rows * bucket.width).toBeLessThanOrEqual(100);
      expect(padded.ids.length).toBe(bucket.rows * bucket.width);
      expect([padded.scored, padded.targets, padded.maskIndex].map((x) => x.length)).toEqual(
        Array(3).fill(bucket.scored),
      );
      for (const [n, target] of real.targets.entries()) {
        const at = padded.scored[n] ?? 0;
        expect(padded.ids[at + 1]).toBe(target);
      }
    }
    expect(bucketPadding(parts)).toBeGreaterThan(0);
    expect(bucketPadding(parts)).toBeLessThan(0.5);
  });

  test('a padding token is scored where it is the only one allowed', () => {
    const [part] = bucketed(batch, 1000, 11);
    const { padded, real } = part!;
    const extra = padded.maskIndex.slice(real.targets.length);
    expect(extra.length).toBeGreaterThan(0);
    for (const [i, row] of extra.entries()) {
      expect(padded.targets[real.targets.length + i]).toBe(0);
      expect([...padded.masks.rows.slice(row * 11, row * 11 + 11)]).toEqual([0, ...Array(10).fill(FORBIDDEN)]);
    }
  });
});
