import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { calculate, MAX_DEPTH, MAX_LENGTH } from '../../../src/env/tools/calculator.ts';

describe('values', () => {
  it.each([
    ['1+1', '2'],
    ['47 + 52', '99'],
    ['3 - 5', '-2'],
    ['2+3*4', '14'],
    ['(2+3)*4', '20'],
    ['10-4-3', '3'],
    ['64/4/2', '8'],
    ['1/3', '0.3333333333333333'],
    ['0.1+0.2', '0.30000000000000004'],
    ['2*-3', '-6'],
    ['--3', '3'],
    ['2--3', '5'],
    ['-(1+2)', '-3'],
    ['0*-1', '0'],
    ['-0', '0'],
    ['007', '7'],
    ['1.50', '1.5'],
    ['6/2', '3'],
    [' \t\n( 1 )\r', '1'],
    ['1000000000000*1000000000000', '1000000000000000000000000'],
    ['123456789012345678901234567890', '123456789012345680000000000000'],
    ['1/10000000', '0.0000001'],
    ['-1/8000000', '-0.000000125'],
    [`${'('.repeat(MAX_DEPTH)}1${')'.repeat(MAX_DEPTH)}`, '1'],
    [`${'-'.repeat(MAX_LENGTH - 1)}1`, '-1'],
  ])('%j is %s', (expression, expected) => {
    expect(calculate(expression)).toBe(expected);
  });
});

describe('errors say where, what was expected and what was found', () => {
  it.each([
    ['', "position 1: expected a number, '-' or '(', found the end"],
    ['1+', "position 3: expected a number, '-' or '(', found the end"],
    ['+1', "position 1: expected a number, '-' or '(', found \"+\""],
    ['1 2', "position 3: expected an operator ('+', '-', '*', '/') or the end, found \"2\""],
    ['(1', "position 3: expected an operator ('+', '-', '*', '/') or ')', found the end"],
    ['1)', "position 2: expected an operator ('+', '-', '*', '/') or the end, found \")\""],
    ['()', "position 2: expected a number, '-' or '(', found \")\""],
    ['.5', "position 1: expected a number, '-' or '(', found \".\""],
    ['5.', 'position 3: expected a digit after the point, found the end'],
    ['1.2.3', "position 4: expected an operator ('+', '-', '*', '/') or the end, found \".\""],
    ['1e5', "position 2: expected an operator ('+', '-', '*', '/') or the end, found \"e\""],
    ['2**3', "position 3: expected a number, '-' or '(', found \"*\""],
    ['1 / 0', 'position 3: division by zero'],
    ['1/(2-2)', 'position 2: division by zero'],
    ['1/-0', 'position 2: division by zero'],
    ['😀', "position 1: expected a number, '-' or '(', found \"😀\""],
    ['１', "position 1: expected a number, '-' or '(', found \"１\""],
    ['1\u00a0+1', "position 2: expected an operator ('+', '-', '*', '/') or the end, found \"\u00a0\""],
    ['\ud800', "position 1: expected a number, '-' or '(', found \"\\ud800\""],
    ['9'.repeat(199), null],
    ['9'.repeat(201), 'expected at most 200 characters, found 201'],
    [`${'('.repeat(21)}1${')'.repeat(21)}`, 'position 21: parentheses nest deeper than 20'],
    [`1${'0'.repeat(190)}*1${'0'.repeat(7)}`, null],
    ['constructor.constructor("return process")()', "position 1: expected a number, '-' or '(', found \"c\""],
    ['1;process.exit()', "position 2: expected an operator ('+', '-', '*', '/') or the end, found \";\""],
    ['Infinity', "position 1: expected a number, '-' or '(', found \"I\""],
    ['NaN', "position 1: expected a number, '-' or '(', found \"N\""],
    ['0x10', "position 2: expected an operator ('+', '-', '*', '/') or the end, found \"x\""],
    ['1_000', "position 2: expected an operator ('+', '-', '*', '/') or the end, found \"_\""],
  ])('%j', (expression, message) => {
    if (message === null) expect(calculate(expression)).toMatch(/^\d+$/);
    else expect(() => calculate(expression)).toThrow(new Error(message));
  });

  it('no expression of the greatest length is large enough to leave the range of doubles', () => {
    const nines = '9'.repeat(99);
    const tiny = `0.${'0'.repeat(97)}1`;
    for (const expression of [`${nines}*${nines}`, `${nines}/${tiny}`, `${'9*'.repeat(99)}9`]) {
      expect(expression.length).toBeLessThanOrEqual(MAX_LENGTH);
      expect(calculate(expression)).toMatch(/^\d{80,}/);
    }
  });
});

/** A tree of an expression: its text with as few or as many parentheses as drawn, and its value by JavaScript's own arithmetic. */
interface Sample {
  readonly text: string;
  readonly value: number;
  /** 0 sum, 1 product, 2 factor: decides where parentheses are needed. */
  readonly rank: number;
}

const within = (sample: Sample, rank: number) => (sample.rank >= rank ? sample.text : `(${sample.text})`);
const space = fc.constantFrom('', '', ' ', '\t', '\n ');
const leaf: fc.Arbitrary<Sample> = fc
  .tuple(fc.nat(999), fc.option(fc.nat(999), { nil: undefined }))
  .map(([whole, fraction]) => (fraction === undefined ? String(whole) : `${whole}.${fraction}`))
  .map((text) => ({ text, value: Number(text), rank: 2 }));
const { sample } = fc.letrec<{ sample: Sample }>((tie) => ({
  sample: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    fc
      .tuple(tie('sample'), fc.constantFrom('+', '-', '*', '/'), tie('sample'), space, space)
      .map(([a, operator, b, left, right]): Sample => {
        const rank = operator === '+' || operator === '-' ? 0 : 1;
        const text = `${within(a, rank)}${left}${operator}${right}${within(b, rank + 1)}`;
        const value = {
          '+': a.value + b.value,
          '-': a.value - b.value,
          '*': a.value * b.value,
          '/': a.value / b.value,
        }[operator];
        // A division by zero anywhere is one of the whole: 1 / (1 / 0) is no 0 here.
        const whole = Number.isFinite(a.value) && Number.isFinite(b.value) ? value : Number.NaN;
        return { text, value: whole, rank };
      }),
    tie('sample').map((a): Sample => ({ text: `-${within(a, 2)}`, value: -a.value, rank: 2 })),
    tie('sample').map((a): Sample => ({ text: `( ${a.text} )`, value: a.value, rank: 2 })),
  ),
}));

describe('against an oracle', () => {
  it('a generated expression has the value that JavaScript’s arithmetic gives its tree', () => {
    let compared = 0;
    fc.assert(
      fc.property(sample, ({ text, value }) => {
        if (text.length > MAX_LENGTH) return;
        if (Number.isFinite(value)) {
          compared++;
          expect(Number(calculate(text))).toBe(value === 0 ? 0 : value);
        } else expect(() => calculate(text)).toThrow(/division by zero/);
      }),
      { numRuns: 2000 },
    );
    expect(compared).toBeGreaterThan(500);
    expect(() => calculate('1 / (1 / 0)')).toThrow(/division by zero/);
  });

  it('the result is a plain decimal that is read back as itself', () => {
    fc.assert(
      fc.property(sample, ({ text, value }) => {
        if (text.length > MAX_LENGTH || !Number.isFinite(value)) return;
        const result = calculate(text);
        expect(result).toMatch(/^-?(0|[1-9]\d*)(\.\d*[1-9])?$/);
        expect(calculate(result)).toBe(result);
      }),
    );
  });

  it('whatever the input, it ends with a decimal or with an Error of bounded length', () => {
    const hostile = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 250 }),
      fc.array(fc.constantFrom(...'0123456789.+-*/() \t()'), { maxLength: 220 }).map((parts) => parts.join('')),
      fc.array(fc.nat(0xffff), { maxLength: 60 }).map((units) => String.fromCharCode(...units)),
    );
    fc.assert(
      fc.property(hostile, (text) => {
        try {
          expect(calculate(text)).toMatch(/^-?(0|[1-9]\d*)(\.\d*[1-9])?$/);
        } catch (error) {
          expect(error).toBeInstanceOf(Error);
          expect(error).toHaveProperty('name', 'Error');
          expect((error as Error).message).toMatch(
            /^(position \d+: .{1,100}|expected at most .*|the result is too large)$/su,
          );
          expect((error as Error).message.length).toBeLessThan(120);
        }
      }),
      { numRuns: 2000 },
    );
  });
});
