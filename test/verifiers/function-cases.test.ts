import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { canaryInput } from '../../src/verifiers/canary.ts';
import functionCases from '../../src/verifiers/function-cases/index.ts';
import { VerifierPool } from '../../src/verifiers/pool.ts';
import { readScores } from '../../src/verifiers/read-scores.ts';
import { inputOf } from './inputs.ts';

const held = { cases: [1, 2, 3, 4].map((input) => ({ input, output: input % 2 === 0 ? [input] : { odd: input } })) };
const RIGHT = '(x) => x % 2 === 0 ? [x] : { odd: x }';
const answer = (final: string | null) => inputOf({ held, final, stop: final === null ? 'max-steps' : 'final' });
let pool: VerifierPool;

beforeAll(async () => {
  pool = await VerifierPool.start({
    verifier: new URL('../../src/verifiers/function-cases/index.ts', import.meta.url).href,
    workers: 2,
  });
});
afterAll(() => pool.close());

const scoreOf = async (final: string | null) => (await pool.score([answer(final)]))[0]!;

describe('a function as the final answer', () => {
  it('that is right on all hidden cases scores 1 and is a success', async () => {
    expect(await scoreOf(RIGHT)).toEqual({ score: 1, success: true, reasons: ['4 of 4 cases'] });
  });

  it.each([
    ['right on half of them', '(x) => [x]', 0.5, []],
    ['that throws', '() => { throw new Error("not yet"); }', 0, ['error: not yet']],
    ['that is no function', '42', 0, ['refused: Expected the code to be one function, found number.']],
    ['that does not parse', '(x) => (', 0, [expect.stringMatching(/^refused: /)]],
    ['that is the empty text', '', 0, [expect.stringMatching(/^refused: /)]],
    ['that loops', '() => { for (;;); }', 0, ['timeout: The code ran longer than 250 ms.']],
    ['that wants the cases', '() => held.cases', 0, ['error: held is not defined']],
    ['that looks like a verdict', '() => ({ score: 1, reasons: [] })', 0, []],
    [
      'that rewrites what compares',
      '(x) => { JSON.stringify = () => "1"; Array.prototype.map = () => 1; return x; }',
      0,
      [],
    ],
    ['that gives itself a form', '(x) => ({ toJSON: () => x % 2 === 0 ? [x] : { odd: x } })', 1, []],
  ])('%s', async (_, code, score, reasons) => {
    const found = await scoreOf(code);
    expect(found.score).toBe(score);
    expect(found.success).toBe(score === 1);
    const [count, ...others] = found.reasons;
    expect(count).toBe(`${score * 4} of 4 cases`);
    for (const reason of reasons) expect(others).toContainEqual(reason);
  });

  it('cannot remember from one case to the next', async () => {
    const counting = `(x) => { globalThis.n = (globalThis.n ?? 0) + 1; return globalThis.n > 1 ? null : (${RIGHT})(x); }`;
    expect((await scoreOf(counting)).score).toBe(1);
  });

  it('that is missing scores 0', async () => {
    expect(await scoreOf(null)).toMatchObject({ score: 0, success: false, reasons: ['no final answer'] });
  });
});

it('an answer that takes the verifier’s process down is unscored, and the others have their scores', async () => {
  const hang = '(x) => { const a = []; a.length = 2 ** 32 - 1; return a.lastIndexOf(5); }';
  const abort = '(x) => new Array(1e9).fill(0)';
  const scores = await pool.score([RIGHT, hang, '(x) => [x]', abort, RIGHT].map(answer));
  expect(scores.map(({ score }) => score)).toEqual([1, null, 0.5, null, 1]);
  expect(scores[1]!.reasons.join()).toContain('process died: hang');
  // The engine gives up, or is given up first.
  expect(scores[3]!.reasons.join()).toMatch(/process died: (out-of-memory|hang)/);
});

it('the canary fails', async () => {
  const [score] = await pool.score([canaryInput(answer(RIGHT), functionCases)]);
  expect(score).toMatchObject({ score: 0, success: false });
});

it('a task without cases is unscored', async () => {
  const [score] = await pool.score([inputOf({ held: {}, final: RIGHT })]);
  expect(score).toMatchObject({
    score: null,
    reasons: ['the verifier threw: Expected a list of cases in held.cases.'],
  });
});

describe('case 22: what a verifier’s process sends is read as untrusted', () => {
  const judge = { range: [0, 1] as const, success: 1, timeoutMs: 1, memoryMiB: 32, reset: 'context' as const };
  const stops = ['final'] as const;
  it('success is the owner’s to say', () => {
    expect(readScores([{ score: 0.5, success: true, reasons: [] }], stops, judge)[0]).toMatchObject({
      success: false,
    });
    expect(readScores([{ score: 1, success: true, reasons: [] }], ['max-steps'], judge)[0]).toMatchObject({
      success: false,
    });
  });
  it.each([
    ['no list', {}],
    [
      'too many',
      [
        { score: 1, reasons: [] },
        { score: 1, reasons: [] },
      ],
    ],
    ['a score out of range', [{ score: 1.5, reasons: [] }]],
    ['a score that is a text', [{ score: '1', reasons: [] }]],
    ['no reasons', [{ score: 1 }]],
    ['a reason without end', [{ score: 1, reasons: ['r'.repeat(2000)] }]],
  ])('%s is refused', (_, value) => {
    expect(() => readScores(value, stops, judge)).toThrow('a sandbox host sent something else than');
  });
});
