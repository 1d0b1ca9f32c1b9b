import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Grammar } from '../../src/policy/grammar/index.ts';
import type { Segment, Trajectory } from '../../src/records/trajectory.ts';
import { type Batch, FORBIDDEN, locate, packBatch, paddingShare, split } from '../../src/train/batch.ts';
import { judge } from '../../src/train/returns.ts';
import { episode, segment, verdict } from './made.ts';

const judged = (id: string, segments: readonly Segment[], ranges?: readonly (readonly [number, number, number])[]) =>
  judge(episode({ id, segments, ...(ranges && { ranges }) }), verdict(1), 0);
const ones = (trajectories: readonly Trajectory[]) =>
  new Map(trajectories.map((t) => [t.id, new Float64Array(t.steps.length).fill(1)]));
const pack = (trajectories: readonly Trajectory[]) =>
  packBatch({ trajectories, advantages: ones(trajectories), denominator: 'tokens' });

/** Episodes of one or two segments with distinct ids everywhere. */
const episodes = fc
  .array(
    fc.array(fc.array(fc.constantFrom('0' as const, '1' as const), { minLength: 1, maxLength: 20 }), {
      minLength: 1,
      maxLength: 2,
    }),
    {
      minLength: 1,
      maxLength: 8,
    },
  )
  .map((made) => {
    let id = 0;
    return made.map((segments, e) =>
      judged(
        `e${e}`,
        segments.map((bits) => {
          const mask = `0${bits.join('')}1`;
          const logprobs = [...mask].map((bit, t) => (bit === '1' ? -(t + 1) / 7 : null));
          return segment(mask, { ids: [...mask].map(() => ++id), logprobs });
        }),
      ),
    );
  });
const sampledIn = (trajectories: readonly Trajectory[]) =>
  trajectories.flatMap((t) => t.segments.flatMap((s) => s.ids.filter((_, i) => s.actionMask[i] === 1)));

describe('packBatch', () => {
  it('lays out rows, positions, targets, logprobs and advantages as worked out by hand', () => {
    const a = judged('a', [segment('00110011', { ids: [5, 6, 7, 8, 9, 10, 11, 12] })]);
    const b = judged('b', [segment('0'), segment('010', { ids: [3, 4, 5], logprobs: [null, -0.5, null] })]);
    const batch = packBatch({
      trajectories: [a, b],
      advantages: new Map([
        ['a', Float64Array.of(2, 3)],
        ['b', Float64Array.of(-1)],
      ]),
      denominator: 'tokens',
    });
    expect(batch).toMatchObject({ width: 8, denominator: 5 });
    expect([...batch.ids]).toEqual([5, 6, 7, 8, 9, 10, 11, 12, 3, 4, 5, 0, 0, 0, 0, 0]);
    expect([...batch.scored]).toEqual([1, 2, 5, 6, 8]);
    expect([...batch.targets]).toEqual([7, 8, 11, 12, 4]);
    expect([...batch.behaviour]).toEqual([-1, -1, -1, -1, -0.5]);
    expect([...batch.advantages]).toEqual([2, 2, 3, 3, -1]);
    expect(batch.masks).toBeUndefined();
    expect(paddingShare([batch])).toBe(5 / 16);
    expect(locate(batch, 3)).toBe('episode a, segment 0, position 7');
    expect(locate(batch, 4)).toBe('episode b, segment 1, position 1');
  });

  it('case 11: the scored tokens are exactly the sampled ones, in order (property)', () => {
    fc.assert(
      fc.property(episodes, (trajectories) => {
        const batch = pack(trajectories);
        expect([...batch.targets]).toEqual(sampledIn(trajectories));
        for (const [n, before] of batch.scored.entries()) expect(batch.ids[before + 1]).toBe(batch.targets[n]);
      }),
    );
  });

  it('case 10: a NaN beside the sampled tokens never enters (property)', () => {
    fc.assert(
      fc.property(episodes, (trajectories) => {
        const poisoned = trajectories.map((t) => ({
          ...t,
          segments: t.segments.map((s) => ({ ...s, logprobs: s.logprobs.map((logprob) => logprob ?? Number.NaN) })),
        }));
        const { rows: _, ...clean } = pack(trajectories);
        expect(pack(poisoned)).toMatchObject(clean);
      }),
    );
  });

  it('case 12: a token that was forced into an action is context and is never scored', () => {
    // The action is 7 8, and an end token 9 was appended because the limit was reached.
    const forced = judged('a', [segment('01100', { ids: [1, 7, 8, 9, 2] })], [[0, 1, 4]]);
    expect([...pack([forced]).targets]).toEqual([7, 8]);
  });

  it('case 03: leaves unusable episodes out of rows and denominator', () => {
    const a = judged('a', [segment('011')]);
    const lost = judge(episode({ id: 'lost', segments: [segment('0111')] }), verdict(null), 0);
    const advantages = ones([a]);
    expect(packBatch({ trajectories: [lost, a, lost], advantages, denominator: 'tokens' })).toEqual(pack([a]));
    expect(packBatch({ trajectories: [lost, a], advantages, denominator: 'episodes' }).denominator).toBe(1);
  });

  it('counts usable episodes, not rows, for the denominator of episodes', () => {
    const trajectories = [judged('a', [segment('011'), segment('01')]), judged('b', [segment('01')])];
    expect(packBatch({ trajectories, advantages: ones(trajectories), denominator: 'episodes' }).denominator).toBe(2);
  });
});

describe('what packBatch refuses', () => {
  const code = (trajectories: readonly Trajectory[], advantages = ones(trajectories)) => {
    try {
      packBatch({ trajectories, advantages, denominator: 'tokens' });
      return undefined;
    } catch (error) {
      return (error as { code: string }).code;
    }
  };

  it('refuses tokens without logprobs, by episode and position, unless the batch is supervised', () => {
    const greedy = judged('greedy', [{ ...segment('0011', { logprobs: [null, null, null, null] }), trainable: false }]);
    expect(() => pack([greedy])).toThrow(
      expect.objectContaining({
        code: 'REFUSED_UNTRAINABLE',
        message:
          'episode greedy, segment 0, position 2: expected the logprob that the token was sampled with, found none',
      }),
    );
    const batch = packBatch({ trajectories: [greedy], advantages: 'supervised', denominator: 'tokens' });
    expect(batch).toMatchObject({
      behaviour: Float32Array.of(0, 0),
      advantages: Float32Array.of(1, 1),
      denominator: 2,
    });
  });

  it('refuses a segment that is marked untrainable although it carries logprobs', () => {
    expect(code([judged('a', [{ ...segment('01'), trainable: false }])])).toBe('REFUSED_UNTRAINABLE');
  });

  it('case 10: refuses a NaN on a sampled token and names episode and position', () => {
    const nan = judged('nan', [segment('0101', { logprobs: [null, -1, null, Number.NaN] })]);
    expect(() => pack([nan])).toThrow(
      'episode nan, segment 0, position 3: expected a finite recorded logprob, found NaN',
    );
  });

  it('refuses records that contradict themselves or each other', () => {
    expect(code([judged('a', [segment('11')])])).toBe('SEGMENT_INVALID');
    expect(code([judged('a', [{ ...segment('01'), logprobs: [null] }])])).toBe('SEGMENT_INVALID');
    expect(code([judged('a', [segment('01')])], new Map())).toBe('NO_ADVANTAGE');
    expect(code([judged('a', [segment('011')], [[0, 1, 2]])])).toBe('TOKENS_UNCLAIMED');
    expect(code([judged('a', [segment('00')], [[0, 1, 1]])])).toBe('NOTHING_SAMPLED');
    expect(code([])).toBe('NOTHING_SAMPLED');
  });
});

describe('the grammar’s masks', () => {
  // Two letters, 1 or 2, then the end 0. State = letters so far.
  const grammar: Grammar = {
    start: 10,
    allowed: (state) => Int32Array.from(state === 12 ? [0] : [1, 2]),
    next: (state, id) => {
      if (id === 0) throw new Error('there is no state after the end');
      return state + 1;
    },
  };
  const masked = (trajectories: readonly Trajectory[]) =>
    packBatch({ trajectories, advantages: 'supervised', denominator: 'tokens', grammar: { grammar, vocabulary: 4 } });

  it('begin anew with each action and follow its sampled tokens', () => {
    const batch = masked([judged('a', [segment('01110111', { ids: [3, 1, 2, 0, 3, 2, 2, 0] })])]);
    expect([...batch.maskIndex]).toEqual([0, 1, 2, 0, 1, 2]);
    expect(batch.masks).toMatchObject({ states: 3, vocabulary: 4 });
    const letters = [FORBIDDEN, 0, 0, FORBIDDEN];
    expect([...batch.masks!.rows]).toEqual([...letters, ...letters, 0, FORBIDDEN, FORBIDDEN, FORBIDDEN]);
  });

  it('begin anew with an action that follows without an observation', () => {
    const ranges = [
      [0, 1, 4],
      [0, 4, 7],
    ] as const;
    const batch = masked([judged('a', [segment('0111111', { ids: [3, 1, 1, 0, 2, 2, 0] })], ranges)]);
    expect([...batch.maskIndex]).toEqual([0, 1, 2, 0, 1, 2]);
  });

  it('refuse a token that they forbid: it was sampled under another grammar', () => {
    expect(() => masked([judged('a', [segment('011', { ids: [3, 1, 0] })])])).toThrow(
      'episode a, segment 0, position 2: expected a token that the grammar allows there, found 0',
    );
  });
});

describe('split', () => {
  /** Everything about each scored token, whatever row and batch it stands in. */
  const scoredTokens = (batches: readonly Batch[]) =>
    batches
      .flatMap((batch) =>
        [...batch.targets].map((target, n) => ({
          where: locate(batch, n),
          target,
          before: batch.ids[batch.scored[n]!],
          behaviour: batch.behaviour[n],
          advantage: batch.advantages[n],
          mask: batch.maskIndex[n],
        })),
      )
      .sort((a, b) => a.target - b.target);

  it('case 14: keeps every scored token once and the whole batch’s denominator, within the limit (property)', () => {
    fc.assert(
      fc.property(episodes, fc.integer({ min: 1, max: 200 }), (trajectories, maxTokens) => {
        const batch = pack(trajectories);
        const parts = split(batch, maxTokens);
        expect(scoredTokens(parts)).toEqual(scoredTokens([batch]));
        for (const part of parts) {
          expect(part.denominator).toBe(batch.denominator);
          expect(part.width % 8).toBe(0);
          if (part.rows.length > 1) expect(part.ids.length).toBeLessThanOrEqual(maxTokens);
        }
        expect(paddingShare(parts)).toBeLessThanOrEqual(paddingShare([batch]));
      }),
    );
  });

  it('puts rows of like length together', () => {
    const long = (id: string) => judged(id, [segment(`0${'1'.repeat(39)}`)]);
    const short = (id: string) => judged(id, [segment(`0${'1'.repeat(7)}`)]);
    const parts = split(pack([short('a'), long('b'), short('c'), long('d')]), 80);
    expect(parts.map((part) => [part.width, part.rows.map((row) => row.episode)])).toEqual([
      [40, ['b', 'd']],
      [8, ['a', 'c']],
    ]);
    expect(paddingShare(parts)).toBe(0);
  });
});
