import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { STOP_RULES, type StopReason } from '../../src/records/stop-reason.ts';
import type { Trajectory } from '../../src/records/trajectory.ts';
import { groupAdvantages } from '../../src/train/advantages.ts';
import { packBatch } from '../../src/train/batch.ts';
import { judge, rewardsToGo, sampledBy } from '../../src/train/returns.ts';
import { episode, segment, verdict } from './made.ts';

describe('judge', () => {
  it('charges the step penalty for every request, the final answer included', () => {
    const judged = judge(episode({ segments: [segment('01010101')] }), verdict(1), 0.05);
    expect(judged.rewards).toEqual([-0.05, -0.05, -0.05, 0.95]);
    expect(judged.return).toBeCloseTo(0.8, 12);
    expect(judged).toMatchObject({ usable: true, terminated: true, truncated: false, verdict: { success: true } });
  });

  it('gives no negative zero where the penalty is 0', () => {
    const judged = judge(episode({}), verdict(0), 0);
    for (const reward of judged.rewards) expect(Object.is(reward, 0)).toBe(true);
  });

  it('case 21: never scores a truncated episode positive, nor as a success', () => {
    for (const stop of ['max-steps', 'max-tokens', 'malformed-limit'] as const) {
      const judged = judge(episode({ stop }), verdict(1), 0.1);
      expect(judged.rewards).toEqual([-0.1, -0.1]);
      expect(judged).toMatchObject({ truncated: true, terminated: false, usable: true, verdict: { success: false } });
    }
    expect(judge(episode({ stop: 'max-steps' }), verdict(-0.5), 0).return).toBe(-0.5);
  });

  it.each([
    [null, 'unscored'],
    [Number.NaN, 'NaN'],
    [Number.POSITIVE_INFINITY, 'infinite'],
  ])('case 03: an episode without a finite score (%s) is not usable and has no return', (score, _name) => {
    const judged = judge(episode({}), verdict(score, true), 0.05);
    expect(judged).toMatchObject({ usable: false, return: null, verdict: { score: null, success: false } });
    expect(judged.rewards).toEqual([-0.05, -0.05]);
  });

  it('case 04: is usable exactly where the stop reason says so', () => {
    for (const stop of Object.keys(STOP_RULES) as StopReason[]) {
      const judged = judge(episode({ stop }), verdict(1), 0);
      expect(judged.usable).toBe(STOP_RULES[stop].usable);
      expect(judged.return === null).toBe(!STOP_RULES[stop].usable);
    }
  });

  it('leaves out an episode that has no step', () => {
    expect(judge(episode({ segments: [segment('000')], stop: 'max-tokens' }), verdict(0), 0).usable).toBe(false);
  });
});

describe('rewardsToGo', () => {
  it('equals the sums worked out by hand', () => {
    expect([...rewardsToGo([1, 2, 3], 1)]).toEqual([6, 5, 3]);
    expect([...rewardsToGo([1, 2, 4], 0.5)]).toEqual([3, 4, 4]);
    expect([...rewardsToGo([1, 2, 3], 0)]).toEqual([1, 2, 3]);
    expect([...rewardsToGo([], 1)]).toEqual([]);
  });
});

/** What each sampled token is weighted with, in order: REINFORCE without a baseline, so that it is the return-to-go. */
function tokenWeights(trajectory: Trajectory, gamma: number): number[] {
  const { byEpisode } = groupAdvantages([trajectory], {
    estimator: 'reinforce',
    baseline: 'none',
    scale: 'none',
    gamma,
  });
  const batch = packBatch({ trajectories: [trajectory], advantages: byEpisode, denominator: 'episodes' });
  return [...batch.advantages];
}

describe('the return that reaches a token', () => {
  it('case 07: a return crosses an observation as if it were not there', () => {
    const split = judge(episode({ segments: [segment('0110011')] }), verdict(1), 0);
    const joined = judge(
      episode({
        segments: [segment('01111')],
        ranges: [
          [0, 1, 3],
          [0, 3, 5],
        ],
      }),
      verdict(1),
      0,
    );
    expect(tokenWeights(split, 1)).toEqual([1, 1, 1, 1]);
    expect(tokenWeights(split, 0.5)).toEqual([0.5, 0.5, 1, 1]);
    for (const gamma of [1, 0.9, 0.5, 0]) expect(tokenWeights(split, gamma)).toEqual(tokenWeights(joined, gamma));
  });

  it('case 07: deleting the observations of any episode changes no return (property)', () => {
    const actions = fc.array(fc.record({ given: fc.nat(4), sampled: fc.integer({ min: 1, max: 4 }) }), {
      minLength: 1,
    });
    fc.assert(
      fc.property(
        actions,
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.double({ min: -1, max: 1, noNaN: true }),
        (parts, gamma, score) => {
          const build = (observe: boolean) => {
            // Nothing predicts a first token: both begin with a given one.
            let at = 1;
            const ranges = parts.map(({ given, sampled }) => {
              const start = at + (observe ? given : 0);
              at = start + sampled;
              return [0, start, at] as const;
            });
            const mask = `0${parts
              .map(({ given, sampled }) => '0'.repeat(observe ? given : 0) + '1'.repeat(sampled))
              .join('')}`;
            return judge(episode({ segments: [segment(mask)], ranges }), verdict(score, false), 0.05);
          };
          const [observed, deleted] = [build(true), build(false)];
          if (observed.usable) expect(tokenWeights(observed, gamma)).toEqual(tokenWeights(deleted, gamma));
        },
      ),
    );
  });

  it('case 08: an observation decays nothing, whatever its length, and the score reaches the last sampled tokens', () => {
    // Two actions of two tokens, a long observation between them, and one after the last, which nothing is sampled on.
    for (const mask of ['011011', `011${'0'.repeat(500)}11`, `011011${'0'.repeat(500)}`]) {
      const cut = judge(episode({ segments: [segment(mask)], stop: 'max-steps' }), verdict(-1), 0);
      expect(tokenWeights(cut, 0.5)).toEqual([-0.5, -0.5, -1, -1]);
    }
  });

  it('case 08: the score of an episode whose last segment has no sampled token is not lost', () => {
    const ended = judge(episode({ segments: [segment('011'), segment('000')] }), verdict(1), 0.25);
    expect(tokenWeights(ended, 1)).toEqual([0.75, 0.75]);
  });
});

describe('sampledBy', () => {
  it('names the step of each sampled token over several segments, and −1 for what was given', () => {
    const made = episode({ segments: [segment('0110'), segment('00011')] });
    expect(sampledBy(made).map((owner) => [...owner])).toEqual([
      [-1, 0, 0, -1],
      [-1, -1, -1, 1, 1],
    ]);
  });

  it('case 12: a token forced inside an action belongs to no step', () => {
    const made = episode({ segments: [segment('0110')], ranges: [[0, 1, 4]] });
    expect([...sampledBy(made)[0]!]).toEqual([-1, 0, 0, -1]);
  });

  it('refuses a sampled token that no step, or two steps, claim, and names it', () => {
    expect(() => sampledBy(episode({ id: 'x', segments: [segment('0111')], ranges: [[0, 1, 3]] }))).toThrow(
      'episode x, segment 0, position 3: expected a sampled token of exactly one step, found none',
    );
    const twice = [
      [0, 1, 3],
      [0, 2, 4],
    ] as const;
    expect(() => sampledBy(episode({ segments: [segment('0111')], ranges: twice }))).toThrow('position 2');
    expect(() => sampledBy(episode({ segments: [segment('01')], ranges: [[0, 1, 3]] }))).toThrow('no such token');
  });
});
