import { expect, test } from 'vitest';
import { z } from 'zod';
import { parseOptions } from '../../src/io/config-problems.ts';

const schema = z.strictObject({
  values: z.int().min(2).max(99).default(99),
  mode: z.enum(['easy', 'hard']).optional(),
});

test("an environment's options get their defaults", () => {
  expect(parseOptions(schema, {})).toEqual({ values: 99 });
});

test("every mistake in an environment's options is told at once, at its path", () => {
  expect(() => parseOptions(schema, { values: 1, mode: 'eazy', vlues: 3 })).toThrowErrorMatchingInlineSnapshot(`
    [IsogymError: environment.options.values: expected a whole number from 2 to 99, found 1
    environment.options.mode: expected one of easy, hard, found "eazy" (did you mean easy?)
    environment.options.vlues: expected one of values, mode, found vlues (did you mean values?)]
  `);
});
