import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { generator, shuffled } from '../../src/records/random.ts';
import type { Trajectory } from '../../src/records/trajectory.ts';
import { type AdvantageOptions, groupAdvantages } from '../../src/train/advantages.ts';
import { rewarded } from './made.ts';

const GRPO: AdvantageOptions = { estimator: 'grpo', baseline: 'group-mean', scale: 'group-std', gamma: 1 };
const REINFORCE: AdvantageOptions = { estimator: 'reinforce', baseline: 'group-mean', scale: 'none', gamma: 1 };

const group = (name: string, scores: readonly number[]) =>
  scores.map((score, i) => rewarded(`${name}.${i}`, name, [score]));
const unusable = (trajectory: Trajectory): Trajectory => ({ ...trajectory, usable: false, return: null });
const first = (trajectories: readonly Trajectory[], options: AdvantageOptions) => {
  const { byEpisode } = groupAdvantages(trajectories, options);
  return trajectories.filter((t) => t.usable).map((t) => byEpisode.get(t.id)![0]);
};

describe('against numbers worked out by hand', () => {
  // Mean 0.5, population deviation 0.5.
  it.each([
    [GRPO, [1, 1, -1, -1]],
    [{ ...GRPO, scale: 'none' }, [0.5, 0.5, -0.5, -0.5]],
    [{ ...GRPO, scale: 'none', baseline: 'leave-one-out' }, [2 / 3, 2 / 3, -2 / 3, -2 / 3]],
    [{ ...GRPO, scale: 'none', baseline: 'none' }, [1, 1, 0, 0]],
  ] as const)('%j of the returns 1 1 0 0', (options, expected) => {
    for (const [i, advantage] of first(group('g', [1, 1, 0, 0]), options).entries()) {
      expect(advantage).toBeCloseTo(expected[i]!, 14);
    }
  });

  it('batch-mean compares across groups: returns 1 0 | 4 3 have mean 2', () => {
    const batch = [...group('a', [1, 0]), ...group('b', [4, 3])];
    expect(first(batch, { ...GRPO, scale: 'none', baseline: 'batch-mean' })).toEqual([-1, -2, 2, 1]);
  });

  it('gives all steps of an episode one advantage under grpo', () => {
    const { byEpisode } = groupAdvantages([rewarded('a', 'g', [-0.1, -0.1, 0.9]), rewarded('b', 'g', [-0.1])], GRPO);
    expect([...byEpisode.get('a')!]).toEqual([1, 1, 1]);
    expect([...byEpisode.get('b')!]).toEqual([-1]);
  });

  it('compares the returns-to-go of steps with the same index under reinforce', () => {
    // G of a: 4 3 2, of b: 2 1; means by index: 3 2 and, alone, 2.
    const batch = [rewarded('a', 'g', [1, 1, 2]), rewarded('b', 'g', [1, 1])];
    const { byEpisode } = groupAdvantages(batch, REINFORCE);
    expect([...byEpisode.get('a')!]).toEqual([1, 1, 0]);
    expect([...byEpisode.get('b')!]).toEqual([-1, -1]);
    const bare = groupAdvantages(batch, { ...REINFORCE, baseline: 'none', gamma: 0.5 });
    expect([...bare.byEpisode.get('a')!]).toEqual([2, 2, 2]);
  });
});

describe('groups that teach nothing', () => {
  it('case 01: a group with identical rewards has advantage exactly 0 and is counted', () => {
    for (const options of [GRPO, REINFORCE, { ...GRPO, scale: 'none', baseline: 'leave-one-out' }] as const) {
      const batch = group('g', Array(8).fill(0.35));
      expect(first(batch, options)).toEqual(Array(8).fill(0));
      expect(groupAdvantages(batch, options).statistics).toMatchObject({ groups: 1, zeroVariance: 1, singletons: 0 });
    }
  });

  it('case 01: a group of one has advantage exactly 0 and is counted', () => {
    for (const options of [GRPO, REINFORCE, { ...GRPO, scale: 'none', baseline: 'leave-one-out' }] as const) {
      const { byEpisode, statistics } = groupAdvantages([rewarded('a', 'g', [-0.05, 0.95])], options);
      expect([...byEpisode.get('a')!]).toEqual([0, 0]);
      expect(statistics).toEqual({ groups: 1, zeroVariance: 0, singletons: 1, unusable: 0 });
    }
  });

  it('takes returns that differ by the rounding of their sums for equal', () => {
    const ways = [
      [0.1, 0.2, 0.3],
      [0.3, 0.2, 0.1],
    ];
    const sums = ways.map((way) => rewarded('x', 'g', way).return);
    expect(sums[0]).not.toBe(sums[1]);
    const batch = ways.map((way, i) => rewarded(`${i}`, 'g', way));
    expect(first(batch, GRPO)).toEqual([0, 0]);
    expect(groupAdvantages(batch, GRPO).statistics.zeroVariance).toBe(1);
  });

  it('does not take small rewards for rounding', () => {
    expect(first(group('g', [1e-30, 3e-30]), GRPO).map((one) => Math.round(one!))).toEqual([-1, 1]);
  });
});

describe('the bound', () => {
  it('case 02: seven rewards of 0.35 and one other give √7 and −1/√7, whatever the other', () => {
    for (const other of [0.36, 0.35000001, 0, 1, -1e6, 1e9]) {
      const advantages = first(group('g', [...Array(7).fill(0.35), other]), GRPO);
      const sign = Math.sign(other - 0.35);
      expect(advantages[7]).toBeCloseTo(sign * Math.sqrt(7), 7);
      for (const advantage of advantages.slice(0, 7)) expect(advantage).toBeCloseTo(-sign / Math.sqrt(7), 7);
    }
  });

  it('case 02: |A| ≤ √(G − 1) for any rewards (property)', () => {
    const scores = fc.array(
      fc.oneof(fc.double({ noNaN: true, min: -1e6, max: 1e6 }), fc.integer({ min: -9, max: 9 })),
      { minLength: 2, maxLength: 16 },
    );
    const nearlyEqual = fc
      .tuple(
        fc.double({ noNaN: true, min: -10, max: 10 }),
        fc.array(fc.integer({ min: -4, max: 4 }), { minLength: 2, maxLength: 16 }),
      )
      .map(([base, ulps]) => ulps.map((ulp) => base * (1 + ulp * Number.EPSILON)));
    fc.assert(
      fc.property(fc.oneof(scores, nearlyEqual), (values) => {
        for (const advantage of first(group('g', values), GRPO)) {
          expect(Math.abs(advantage!)).toBeLessThanOrEqual(Math.sqrt(values.length - 1) * (1 + 1e-9));
        }
      }),
      { numRuns: 1000 },
    );
  });

  it('refuses to divide by a deviation that does not belong to the baseline', () => {
    for (const baseline of ['leave-one-out', 'batch-mean', 'none'] as const) {
      expect(() => groupAdvantages(group('g', [0, 1]), { ...GRPO, baseline })).toThrow('expected baseline group-mean');
    }
  });
});

describe('what is left out', () => {
  it('case 03: a rollout that could not be scored moves neither its siblings’ baseline nor the result', () => {
    const whole = group('g', [1, 0, 0.5]);
    const withLost = [...whole, unusable(rewarded('lost', 'g', [-100]))];
    const { byEpisode, statistics } = groupAdvantages(withLost, GRPO);
    expect(byEpisode).toEqual(groupAdvantages(whole, GRPO).byEpisode);
    expect(statistics.unusable).toBe(1);
  });

  it('case 04: a timed-out rollout is out of mean, deviation and result alike, and leaves a group of one', () => {
    const [a, b] = group('g', [1, 0]);
    const { byEpisode, statistics } = groupAdvantages([a!, unusable({ ...b!, stop: 'deadline' })], GRPO);
    expect([...byEpisode]).toEqual([['g.0', Float64Array.of(0)]]);
    expect(statistics).toEqual({ groups: 1, zeroVariance: 0, singletons: 1, unusable: 1 });
  });

  it('ends with NO_USABLE_ROLLOUT, and says how the episodes ended, where none is left', () => {
    const lost = group('g', [1, 0]).map((t) => unusable({ ...t, stop: 'sandbox-failure' }));
    expect(() => groupAdvantages(lost, GRPO)).toThrow(
      expect.objectContaining({
        code: 'NO_USABLE_ROLLOUT',
        message: expect.stringContaining('none among 2 (2 sandbox-failure)'),
      }),
    );
    expect(() => groupAdvantages([], GRPO)).toThrow(expect.objectContaining({ code: 'NO_USABLE_ROLLOUT' }));
  });
});

describe('grouping', () => {
  it('case 05: shuffling the batch changes nothing, to the bit, also where a group lost a member', () => {
    const batch = [...group('a', [0.1, 0.7, 0.35]), ...group('b', [1 / 3, 0.35, 0.35, 0.9]), ...group('c', [0.2])];
    for (const options of [GRPO, REINFORCE, { ...REINFORCE, baseline: 'batch-mean' }] as const) {
      const expected = groupAdvantages(batch, options);
      for (let seed = 0; seed < 20; seed++) {
        const { byEpisode, statistics } = groupAdvantages(shuffled(batch, generator(`${seed}`)), options);
        for (const [id, advantages] of expected.byEpisode) expect(byEpisode.get(id)).toEqual(advantages);
        expect(statistics).toEqual(expected.statistics);
      }
    }
  });

  it('case 06: two tasks with the same prompt and different hidden state are two groups', () => {
    const batch = [
      rewarded('a0', 'a', [1], 'same prompt'),
      rewarded('b0', 'b', [0], 'same prompt'),
      rewarded('a1', 'a', [1], 'same prompt'),
      rewarded('b1', 'b', [0], 'same prompt'),
    ];
    expect(first(batch, GRPO)).toEqual([0, 0, 0, 0]);
    expect(groupAdvantages(batch, GRPO).statistics).toMatchObject({ groups: 2, zeroVariance: 2 });
  });

  it('refuses two episodes of one id', () => {
    expect(() => groupAdvantages([rewarded('a', 'g', [1]), rewarded('a', 'g', [0])], GRPO)).toThrow('found a twice');
  });
});
