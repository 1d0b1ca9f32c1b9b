import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Json } from '../../src/records/json.ts';
import { canaryInput, checkCanary } from '../../src/verifiers/canary.ts';
import exactAnswer from '../../src/verifiers/exact-answer/index.ts';
import { VerifierRunner } from '../../src/verifiers/runner.ts';
import { inputOf } from './inputs.ts';

let runner: VerifierRunner;
beforeAll(async () => {
  runner = await VerifierRunner.create(exactAnswer);
});
afterAll(() => runner.dispose());

describe('exact answer', () => {
  it.each([
    ['46', 1],
    [' 46\n', 1],
    ['\u00a046\u2003', 1],
    ['47', 0],
    ['46.', 0],
    ['046', 0],
    ['4 6', 0],
    ['', 0],
    ['46\u0000', 0],
    ['４６', 0],
    [null, 0],
  ])('the final answer %j scores %d where "46" is expected', (final, score) => {
    const verdict = runner.score(inputOf({ final }));
    expect(verdict).toMatchObject({ score, success: score === 1 });
    expect(verdict.reasons).toHaveLength(1);
  });

  it('says what it expected and what it found', () => {
    expect(runner.score(inputOf({ final: ' 47 ' })).reasons).toEqual(['expected "46", found "47"']);
    expect(runner.score(inputOf({ final: null, stop: 'max-steps' })).reasons).toEqual(['no final answer']);
  });

  it('tells lone surrogates apart', () => {
    const held = { answer: '\ud800' };
    expect(runner.score(inputOf({ held, final: '\ud800' })).score).toBe(1);
    expect(runner.score(inputOf({ held, final: '\ud801' })).score).toBe(0);
  });

  it.each([[null], ['46'], [{}], [{ answer: 46 }], [{ answer: null }], [['46']]] as [Json][])(
    'a task that holds %j instead of an answer is unscored, not wrong',
    (held) => {
      expect(runner.score(inputOf({ held }))).toEqual({
        score: null,
        success: false,
        reasons: ['the verifier threw: Expected a string in held.answer.'],
      });
    },
  );
});

describe('the canary', () => {
  const step = {
    index: 0,
    action: { text: 'answer 46', calls: [], final: '46' },
    calls: [],
    tokens: { segment: 0, start: 0, end: 1 },
    hash: '',
  };

  it('is the same episode with another end, and no trace of the right answer in its steps', () => {
    const call = { ...step, action: { text: 'lookup x', calls: [] } };
    const input = inputOf({ steps: [call, step], stop: 'max-steps', final: null });
    const canary = canaryInput(input, exactAnswer);
    expect(canary).toEqual({
      ...input,
      stop: 'final',
      final: exactAnswer.canary,
      steps: [call, { ...step, action: { text: exactAnswer.canary, calls: [], final: exactAnswer.canary } }],
    });
    expect(input.final).toBeNull();
  });

  it('is rejected by the exact answer', () => {
    const score = runner.score(canaryInput(inputOf({ steps: [step] }), exactAnswer));
    expect(score).toMatchObject({ score: 0, success: false });
    expect(() => checkCanary(score)).not.toThrow();
  });

  it('a verifier that passes it is compromised; one that leaves it unscored is not', () => {
    expect(() => checkCanary({ score: 1, success: true, reasons: ['always right'] })).toThrow(
      expect.objectContaining({
        code: 'VERIFIER_COMPROMISED',
        message:
          'Expected the verifier to reject an answer that is known to be wrong, found it scored 1 (always right).',
      }),
    );
    expect(() => checkCanary({ score: null, success: false, reasons: [] })).not.toThrow();
    expect(() => checkCanary({ score: 0.4, success: false, reasons: [] })).not.toThrow();
  });
});
