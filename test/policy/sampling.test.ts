import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { greedyToken, sampleToken } from '../../src/policy/sampling.ts';

const ids = (...list: number[]) => Int32Array.from(list);
/** Logits whose softmax over ids 1, 2, 4 is 1/7, 2/7, 4/7 to float32; id 0 and 3 are larger and not allowed. */
const row = Float32Array.from([50, 0, Math.log(2), 50, Math.log(4)]);
const allowed = ids(1, 2, 4);

describe('sampleToken', () => {
  test('gives the logprob of the renormalised distribution over the allowed ids', () => {
    expect(sampleToken(row, 0, allowed, 1, 0)).toEqual({ id: 1, logprob: expect.closeTo(Math.log(1 / 7), 6) });
    expect(sampleToken(row, 0, allowed, 1, 0.3)).toEqual({ id: 2, logprob: expect.closeTo(Math.log(2 / 7), 6) });
    expect(sampleToken(row, 0, allowed, 1, 0.99)).toEqual({ id: 4, logprob: expect.closeTo(Math.log(4 / 7), 6) });
  });

  test('case 13: the logprob is taken under the temperature that sampled', () => {
    // At T = 0.5 the weights 1, 2, 4 are squared: 1, 4, 16 of 21.
    expect(sampleToken(row, 0, allowed, 0.5, 0).logprob).toBeCloseTo(Math.log(1 / 21), 6);
    expect(sampleToken(row, 0, allowed, 0.5, 0.2).logprob).toBeCloseTo(Math.log(4 / 21), 6);
    expect(sampleToken(row, 0, allowed, 0.5, 0.9).logprob).toBeCloseTo(Math.log(16 / 21), 6);
  });

  test('an id owns the half-open interval of its cumulative probability', () => {
    const equal = new Float32Array(4);
    const all = ids(0, 1, 2, 3);
    const drawn = (uniform: number) => sampleToken(equal, 0, all, 1, uniform).id;
    const below = (x: number) => x - 2 ** -53;
    expect([0, below(0.25), 0.25, below(0.5), 0.5, below(0.75), 0.75, 1 - 2 ** -53].map(drawn)).toEqual([
      0, 0, 1, 1, 2, 2, 3, 3,
    ]);
    expect(sampleToken(equal, 0, all, 1, 0.4).logprob).toBe(-Math.log(4));
  });

  test('an id of probability 0 is never drawn, at neither edge', () => {
    const edges = Float32Array.from([Number.NEGATIVE_INFINITY, 0, -2000, 0, Number.NEGATIVE_INFINITY]);
    const all = ids(0, 1, 2, 3, 4);
    expect(sampleToken(edges, 0, all, 1, 0)).toEqual({ id: 1, logprob: -Math.LN2 });
    expect(sampleToken(edges, 0, all, 1, 0.5)).toEqual({ id: 3, logprob: -Math.LN2 });
    expect(sampleToken(edges, 0, all, 1, 1 - 2 ** -53)).toEqual({ id: 3, logprob: -Math.LN2 });
  });

  test('a single allowed id is certain', () => {
    expect(sampleToken(row, 0, ids(2), 0.7, 0.5)).toEqual({ id: 2, logprob: 0 });
  });

  test('reads the row that begins at the offset', () => {
    const two = Float32Array.from([9, 9, 9, 0, Math.log(3), 0]);
    expect(sampleToken(two, 3, ids(0, 1), 1, 0.26)).toEqual({ id: 1, logprob: expect.closeTo(Math.log(0.75), 6) });
  });

  test('over the allowed ids the probabilities sum to 1, whatever the logits and the temperature', () => {
    const logits = fc.array(fc.float({ min: -1e4, max: 1e4, noNaN: true }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(logits, fc.double({ min: 0.01, max: 100, noNaN: true }), (values, temperature) => {
        const rowOf = Float32Array.from(values);
        const all = Int32Array.from(values.keys());
        const largest = Math.max(...rowOf);
        const weights = Array.from(rowOf, (value) => Math.exp((value - largest) / temperature));
        const total = weights.reduce((sum, weight) => sum + weight, 0);
        let sum = 0;
        let before = 0;
        for (const [id, weight] of weights.entries()) {
          // The middle of the id's interval, unless it is too narrow to be hit in double precision.
          const drawn = sampleToken(rowOf, 0, all, temperature, (before + weight / 2) / total);
          before += weight;
          if (weight / total < 1e-12) continue;
          expect(drawn.id).toBe(id);
          sum += Math.exp(drawn.logprob);
        }
        expect(sum).toBeCloseTo(1, 9);
      }),
    );
  });

  test('a bad logit among the allowed is named, and one that is not allowed does not matter', () => {
    const bad = Float32Array.from([0, Number.NaN, 1, Number.POSITIVE_INFINITY]);
    expect(() => sampleToken(bad, 0, ids(0, 1), 1, 0)).toThrow('expected a finite logit for token 1, found NaN');
    expect(() => sampleToken(bad, 0, ids(0, 3), 1, 0)).toThrow('expected a finite logit for token 3, found Infinity');
    expect(() => greedyToken(bad, 0, ids(1, 2))).toThrow(expect.objectContaining({ code: 'BAD_LOGIT' }));
    expect(() => sampleToken(bad, 0, ids(0, 9), 1, 0)).toThrow('token 9');
    expect(sampleToken(bad, 0, ids(0, 2), 1, 0).id).toBe(0);
    const none = new Float32Array(2).fill(Number.NEGATIVE_INFINITY);
    expect(() => sampleToken(none, 0, ids(0, 1), 1, 0)).toThrow('all 2 allowed logits are -Infinity');
  });

  test('nothing allowed and a temperature that is not positive are refused', () => {
    expect(() => sampleToken(row, 0, ids(), 1, 0)).toThrow(expect.objectContaining({ code: 'NOTHING_ALLOWED' }));
    for (const temperature of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => sampleToken(row, 0, allowed, temperature, 0)).toThrow(
        expect.objectContaining({ code: 'BAD_TEMPERATURE' }),
      );
    }
  });
});

describe('greedyToken', () => {
  test('takes the largest of the allowed, the first of equals', () => {
    expect(greedyToken(row, 0, allowed)).toBe(4);
    expect(greedyToken(Float32Array.from([1, 3, 3, 3]), 0, ids(0, 2, 3))).toBe(2);
    expect(greedyToken(new Float32Array(3).fill(Number.NEGATIVE_INFINITY), 0, ids(1, 2))).toBe(1);
  });
});
