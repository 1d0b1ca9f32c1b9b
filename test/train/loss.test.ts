import * as tf from '@tensorflow/tfjs';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { selectBackend } from '../../src/policy/backends/select.ts';
import { sampleToken } from '../../src/policy/sampling.ts';
import { generator } from '../../src/records/random.ts';
import { FORBIDDEN } from '../../src/train/batch.ts';
import { k3, policyLoss, scoredLogprobs, supervisedLoss } from '../../src/train/loss.ts';

beforeAll(() => selectBackend('cpu'));

/** A small problem in plain numbers. `allowed[n]` are the tokens that the grammar allows. */
interface Problem {
  readonly logits: number[][];
  readonly targets: number[];
  readonly allowed: number[][];
  readonly temperature: number;
  readonly behaviour: number[];
  readonly advantages: number[];
  readonly reference: number[];
  readonly clipLow: number;
  readonly clipHigh: number;
  readonly entropyCoefficient: number;
  readonly klCoefficient: number;
  readonly denominator: number;
}

/** The same formulas in double precision, one token at a time, with the gradient in the logits by hand. */
function oracle(problem: Problem): { loss: number; logprobs: number[]; entropy: number[]; gradient: number[][] } {
  let loss = 0;
  const [logprobs, entropy]: number[][] = [[], []];
  const gradient = problem.logits.map((row) => row.map(() => 0));
  for (const [n, row] of problem.logits.entries()) {
    const allowed = problem.allowed[n]!;
    const [target, A, T] = [problem.targets[n]!, problem.advantages[n]!, problem.temperature];
    const total = allowed.reduce((sum, j) => sum + Math.exp(row[j]! / T), 0);
    const p = new Map(allowed.map((j) => [j, Math.exp(row[j]! / T) / total]));
    const logprob = Math.log(p.get(target)!);
    const H = -[...p.values()].reduce((sum, pj) => sum + pj * Math.log(pj), 0);
    logprobs!.push(logprob);
    entropy!.push(H);
    const ratio = Math.exp(logprob - problem.behaviour[n]!);
    const bounded = Math.min(Math.max(ratio, 1 - problem.clipLow), 1 + problem.clipHigh);
    const d = problem.reference[n]! - logprob;
    loss -=
      Math.min(ratio * A, bounded * A) + problem.entropyCoefficient * H - problem.klCoefficient * (Math.exp(d) - d - 1);
    const unclipped = ratio * A <= bounded * A;
    const dLogprob = -(unclipped ? ratio * A : 0) + problem.klCoefficient * (1 - Math.exp(d));
    for (const [j, pj] of p) {
      const inLogprob = ((j === target ? 1 : 0) - pj) / T;
      const inEntropy = (-pj * (Math.log(pj) + H)) / T;
      gradient[n]![j] = (dLogprob * inLogprob - problem.entropyCoefficient * inEntropy) / problem.denominator;
    }
  }
  return { loss: loss / problem.denominator, logprobs: logprobs!, entropy: entropy!, gradient };
}

/** The tensors' own loss and gradient. */
function measured(problem: Problem, logits: readonly (readonly number[])[] = problem.logits) {
  return tf.tidy(() => {
    const vocabulary = problem.logits[0]!.length;
    const rows = problem.allowed.map((allowed) =>
      Array.from({ length: vocabulary }, (_, j) => (allowed.includes(j) ? 0 : FORBIDDEN)),
    );
    const masks = { rows: tf.tensor2d(rows), index: tf.range(0, rows.length, 1, 'int32') };
    const lossOf = (z: tf.Tensor) => {
      const { logprobs, entropy } = scoredLogprobs({
        logits: z as tf.Tensor2D,
        targets: tf.tensor1d(problem.targets, 'int32'),
        masks,
        temperature: problem.temperature,
        entropy: true,
      });
      const { clipLow, clipHigh, denominator } = problem;
      return policyLoss({
        logprobs,
        behaviour: tf.tensor1d(problem.behaviour),
        advantages: tf.tensor1d(problem.advantages),
        clipLow,
        clipHigh,
        denominator,
        entropy: { values: entropy!, coefficient: problem.entropyCoefficient },
        reference: { logprobs: tf.tensor1d(problem.reference), coefficient: problem.klCoefficient },
      });
    };
    const { value, grad } = tf.valueAndGrad(lossOf)(tf.tensor2d(logits.map((row) => [...row])));
    return { loss: value.dataSync()[0]!, gradient: grad.arraySync() as number[][] };
  });
}

/** Evenly spread: `fc.double` is even over bit patterns, so nearly all that it gives is next to 0. */
const real = (min: number, max: number) =>
  fc.integer({ min: 1000 * min, max: 1000 * max }).map((value) => value / 1000);
const token = fc.record({
  logits: fc.array(real(-3, 3), { minLength: 5, maxLength: 5 }),
  allowed: fc.subarray([0, 1, 2, 3, 4], { minLength: 1 }),
  pick: fc.nat(),
  drift: real(-0.6, 0.6),
  advantage: real(-2, 2),
  referenceDrift: real(-1, 1),
});
const problems: fc.Arbitrary<Problem> = fc
  .record({
    tokens: fc.array(token, { minLength: 1, maxLength: 4 }),
    temperature: real(0.5, 1.5),
    entropyCoefficient: real(0, 0.5),
    klCoefficient: real(0, 0.5),
  })
  .map(({ tokens, ...rest }) => {
    const problem = {
      ...rest,
      logits: tokens.map((one) => one.logits),
      allowed: tokens.map((one) => one.allowed),
      targets: tokens.map((one) => one.allowed[one.pick % one.allowed.length]!),
      advantages: tokens.map((one) => one.advantage),
      clipLow: 0.2,
      clipHigh: 0.3,
      denominator: 7,
    };
    const blank = tokens.map(() => 0);
    const { logprobs } = oracle({ ...problem, behaviour: blank, reference: blank });
    return {
      ...problem,
      behaviour: tokens.map((one, n) => logprobs[n]! - one.drift),
      reference: tokens.map((one, n) => logprobs[n]! + one.referenceDrift),
    };
  })
  // Where the ratio meets a bound the loss has a kink, and no derivative to compare.
  .filter((problem) => {
    const { logprobs } = oracle(problem);
    return logprobs.every((logprob, n) => {
      const ratio = Math.exp(logprob - problem.behaviour[n]!);
      return Math.abs(ratio - 0.8) > 0.02 && Math.abs(ratio - 1.3) > 0.02;
    });
  });

describe('the policy loss', () => {
  it('equals a case worked out by hand', () => {
    // p = ½: ratio 2 with A = 1 is clipped to 1.2; ratio ½ with A = −1 to 0.8, as −0.8 < −0.5.
    const half = Math.log(0.5);
    const { loss, gradient } = measured({
      logits: [
        [0, 0],
        [0, 0],
      ],
      targets: [0, 1],
      allowed: [
        [0, 1],
        [0, 1],
      ],
      temperature: 1,
      behaviour: [Math.log(0.25), 0],
      advantages: [1, -1],
      reference: [half, half],
      clipLow: 0.2,
      clipHigh: 0.2,
      entropyCoefficient: 0,
      klCoefficient: 1,
      denominator: 2,
    });
    expect(loss).toBeCloseTo(-(1.2 - 0.8) / 2, 6);
    expect(gradient.flat()).toEqual([0, 0, 0, 0]);
  });

  it('the oracle’s gradient agrees with its own finite differences', () => {
    fc.assert(
      fc.property(problems, (problem) => {
        const { gradient } = oracle(problem);
        for (const [n, row] of problem.logits.entries()) {
          for (const j of row.keys()) {
            const at = (h: number) =>
              oracle({ ...problem, logits: problem.logits.map((r, i) => (i === n ? r.with(j, r[j]! + h) : r)) }).loss;
            expect(gradient[n]![j]).toBeCloseTo((at(1e-5) - at(-1e-5)) / 2e-5, 7);
          }
        }
      }),
    );
  });

  it('equals the oracle in value and gradient (property)', () => {
    fc.assert(
      fc.property(problems, (problem) => {
        const expected = oracle(problem);
        const { loss, gradient } = measured(problem);
        expect(loss).toBeCloseTo(expected.loss, 5);
        for (const [n, row] of expected.gradient.entries()) {
          for (const [j, value] of row.entries()) expect(gradient[n]![j]).toBeCloseTo(value, 5);
        }
      }),
    );
  });

  it('has the gradient that finite differences of the masked loss show, and none in forbidden logits (property)', () => {
    fc.assert(
      fc.property(problems, (problem) => {
        const { gradient } = measured(problem);
        for (const [n, row] of problem.logits.entries()) {
          for (const j of row.keys()) {
            const at = (h: number) =>
              measured(
                problem,
                problem.logits.map((r, i) => (i === n ? r.with(j, r[j]! + h) : r)),
              ).loss;
            expect(Math.abs(gradient[n]![j]! - (at(5e-3) - at(-5e-3)) / 1e-2)).toBeLessThan(1e-3);
            if (!problem.allowed[n]!.includes(j)) expect(gradient[n]![j]).toBeCloseTo(0, 30);
          }
        }
      }),
      { numRuns: 15 },
    );
  });

  it('on-policy has the gradient of REINFORCE, −A ∇logprob / D, whatever the clip', () => {
    fc.assert(
      fc.property(problems, (problem) => {
        const { logprobs } = oracle(problem);
        const onPolicy = {
          ...problem,
          behaviour: logprobs,
          entropyCoefficient: 0,
          klCoefficient: 0,
          clipLow: 0.01,
          clipHigh: 0.01,
        };
        const { gradient } = measured(onPolicy);
        const score = oracle({ ...onPolicy, advantages: problem.advantages.map(() => 1) }).gradient;
        for (const [n, row] of score.entries()) {
          for (const [j, value] of row.entries())
            expect(gradient[n]![j]).toBeCloseTo(problem.advantages[n]! * value, 5);
        }
      }),
    );
  });
});

describe('scoredLogprobs', () => {
  const score = (logits: number[][], targets: number[], allowed?: number[][]) =>
    tf.tidy(() => {
      const vocabulary = logits[0]!.length;
      const masks = allowed && {
        rows: tf.tensor2d(
          allowed.map((row) => Array.from({ length: vocabulary }, (_, j) => (row.includes(j) ? 0 : FORBIDDEN))),
        ),
        index: tf.range(0, allowed.length, 1, 'int32') as tf.Tensor1D,
      };
      const out = scoredLogprobs({
        logits: tf.tensor2d(logits),
        targets: tf.tensor1d(targets, 'int32'),
        masks,
        temperature: 1,
        entropy: true,
      });
      return { logprobs: [...out.logprobs.dataSync()], entropy: [...out.entropy!.dataSync()] };
    });

  it('gives ln ½ and ln 2 where two tokens are equally likely, and 0 and 0 where one alone is allowed', () => {
    const { logprobs, entropy } = score(
      [
        [5, 5, 9],
        [1, 7, 3],
      ],
      [0, 2],
      [[0, 1], [2]],
    );
    expect(logprobs[0]).toBeCloseTo(-Math.LN2, 6);
    expect(entropy[0]).toBeCloseTo(Math.LN2, 6);
    expect(logprobs[1]).toBeCloseTo(0, 30);
    expect(entropy[1]).toBeCloseTo(0, 30);
  });

  it('bears logits whose exponentials overflow and underflow', () => {
    expect(score([[1000, 999, -1000]], [1]).logprobs[0]).toBeCloseTo(-1 - Math.log1p(Math.exp(-1)), 5);
  });

  it('case 10: a NaN or an infinity among forbidden logits changes neither value nor gradient', () => {
    const problem = (poison: number): Problem => ({
      logits: [[1, poison, 2, poison]],
      targets: [2],
      allowed: [[0, 2]],
      temperature: 0.6,
      behaviour: [-1],
      advantages: [1],
      reference: [-1],
      clipLow: 0.2,
      clipHigh: 0.2,
      entropyCoefficient: 0.1,
      klCoefficient: 0.1,
      denominator: 1,
    });
    for (const poison of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      expect(measured(problem(poison))).toEqual(measured(problem(0)));
    }
  });

  it('case 10: a NaN on an allowed logit is not hidden', () => {
    expect(score([[1, Number.NaN, 2]], [2], [[1, 2]]).logprobs[0]).toBeNaN();
  });

  it.each([
    ['with a grammar', true],
    ['without a grammar', false],
  ])('case 13: the ratio of tokens sampled at temperature 0.6 %s is 1 to 1e-6', (_name, constrained) => {
    const [rows, vocabulary, temperature] = [400, 300, 0.6];
    const random = generator('case 13');
    const logits = Float32Array.from({ length: rows * vocabulary }, () => 4 * (random() + random() + random() - 1.5));
    const all = Int32Array.from({ length: vocabulary }, (_, j) => j);
    const allowed = Array.from({ length: rows }, () => (constrained ? all.filter(() => random() < 0.2) : all));
    const drawn = allowed.map((ids, n) => sampleToken(logits, n * vocabulary, ids, temperature, random()));
    const logprobs = tf.tidy(() => {
      const mask = allowed.map((ids) =>
        Array.from({ length: vocabulary }, (_, j) => (ids.includes(j) ? 0 : FORBIDDEN)),
      );
      return scoredLogprobs({
        logits: tf.tensor2d(logits, [rows, vocabulary]),
        targets: tf.tensor1d(
          drawn.map((one) => one.id),
          'int32',
        ),
        masks: constrained ? { rows: tf.tensor2d(mask), index: tf.range(0, rows, 1, 'int32') } : undefined,
        temperature,
        entropy: false,
      }).logprobs.dataSync();
    });
    for (const [n, { logprob }] of drawn.entries()) {
      expect(Math.abs(Math.exp(logprobs[n]! - logprob) - 1)).toBeLessThan(1e-6);
    }
  });
});

describe('the smaller losses', () => {
  it('supervised: the weighted sum of −ln p over D', () => {
    const loss = supervisedLoss(tf.tensor1d([-2, -0.5]), tf.tensor1d([1, 3]), 4);
    expect(loss.dataSync()[0]).toBeCloseTo((2 + 1.5) / 4, 6);
  });

  it('k₃ is never negative, 0 where the policies agree, and right on average: KL of two coins', () => {
    const [p, q] = [0.7, 0.4];
    const [heads, tails] = [
      ...k3(tf.tensor1d([Math.log(p), Math.log(1 - p)]), tf.tensor1d([Math.log(q), Math.log(1 - q)])).dataSync(),
    ];
    expect(Math.min(heads!, tails!)).toBeGreaterThan(0);
    expect(p * heads! + (1 - p) * tails!).toBeCloseTo(p * Math.log(p / q) + (1 - p) * Math.log((1 - p) / (1 - q)), 6);
    expect(k3(tf.tensor1d([-1]), tf.tensor1d([-1])).dataSync()[0]).toBe(0);
  });
});
