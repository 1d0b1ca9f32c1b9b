import { beforeEach, expect, it } from 'vitest';
import { type Episode, episodeOf, mayBeUsable } from '../../src/records/trajectory.ts';
import { judged, stepCount, unread } from '../../src/records/unread.ts';
import { verifierInput } from '../../src/train/collect.ts';
import { judge } from '../../src/train/returns.ts';
import { canaryInput } from '../../src/verifiers/canary.ts';
import { episode } from '../train/made.ts';

const task = { id: 't', prompt: 'p', public: null, held: { answer: '1' } };
const judgement = {
  terminated: true,
  truncated: false,
  usable: true,
  verdict: { score: 1, success: true, reasons: [] },
  rewards: [0, 1],
  return: 1,
};
let plain: Episode;
let made: number;
let late: Episode;

beforeEach(() => {
  plain = episode({});
  const { steps, segments, ...rest } = plain;
  made = 0;
  const body = { steps, segments };
  late = unread(rest, {
    count: steps.length,
    read() {
      made++;
      return body;
    },
  });
});

it('what was not read is where it stands in any other record: in JSON, copies, spreads and comparisons', () => {
  expect(JSON.stringify(late)).toBe(JSON.stringify(plain));
  expect({ ...late }).toStrictEqual(plain);
  expect(structuredClone(late)).toStrictEqual(plain);
  expect(episodeOf(late)).toStrictEqual(plain);
  expect(late).toEqual(plain);
  expect(late.steps).toBe(plain.steps);
  expect(JSON.stringify(judged(late, judgement))).toBe(JSON.stringify(judged(plain, judgement)));
  expect(structuredClone(judged(late, judgement))).toStrictEqual({ ...plain, ...judgement });
});

it('judging an episode by its answer makes nothing of it', () => {
  expect(stepCount(late)).toBe(plain.steps.length);
  expect(mayBeUsable(late)).toBe(true);
  const trajectory = judge(late, judgement.verdict, 0.05);
  const input = verifierInput(late, task, ['held', 'final']);
  const canary = canaryInput(input, { canary: 'no' });
  expect([trajectory.rewards.length, input.final, canary.final]).toEqual([plain.steps.length, plain.final, 'no']);
  expect(made).toBe(0);
  for (const reads of [undefined, ['steps'] as const]) expect(verifierInput(late, task, reads).steps).toBe(plain.steps);
  expect(trajectory).toEqual(judge(plain, judgement.verdict, 0.05));
});

it('what every record can hold beside its steps is kept, and nothing else added', () => {
  const { steps, segments, ...rest } = plain;
  const whole = {
    ...rest,
    forkedFrom: { episode: 'e', step: 1, seed: 's' },
    stop: 'sandbox-failure' as const,
    stopDetail: 'd',
    failure: 'hang' as const,
  };
  const again = unread(whole, { count: steps.length, read: () => ({ steps, segments }) });
  expect(episodeOf(again)).toStrictEqual({ ...whole, steps, segments });
  expect(Object.keys(late)).toEqual(Object.keys(plain));
});
