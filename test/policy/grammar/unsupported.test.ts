import { expect, test } from 'vitest';
import { z } from 'zod';
import type { FormatName } from '../../../src/env/environment.ts';
import { defineTool } from '../../../src/env/tool.ts';
import { actionGrammar } from '../../../src/policy/grammar/index.ts';
import { Tokenizer } from '../../../src/policy/tokenizer.ts';

function build(format: FormatName, parameters: z.ZodObject, answer: z.ZodType<string> = z.string()) {
  const tool = defineTool({ name: 'find', description: '', parameters, effect: 'read' });
  return actionGrammar({ format, tools: [tool], answer }, new Tokenizer([]));
}

test.each([
  [z.number(), 'a number that need not be an integer'],
  [z.float32(), 'the check number_format'],
  [z.int().multipleOf(5), 'the check multiple_of'],
  [z.int().refine((n) => n !== 3), 'a refinement'],
  [z.coerce.number().int(), 'z.coerce'],
  [z.coerce.boolean(), 'z.coerce'],
  [z.coerce.string(), 'z.coerce'],
  [z.string().trim(), 'a check that rewrites the value'],
  [z.string().toUpperCase(), 'a check that rewrites the value'],
  [z.string().refine((s) => s !== ''), 'a refinement'],
  [z.url(), 'the string format url'],
  [z.string().startsWith('a'), 'the string format starts_with'],
  [z.string().regex(/a/i), '/a/i with the flags "i"'],
  [z.string().regex(/(?=a)/), 'a look-around or a modifier in /(?=a)/'],
  [z.string().max(5000), 'the length bound 5000'],
  [z.string().default('a'), 'z.default'],
  [z.string().catch('a'), 'z.catch'],
  [z.string().transform((s) => s), 'z.pipe'],
  [z.lazy(() => z.string()), 'z.lazy'],
  [z.record(z.string(), z.int()), 'z.record'],
  [z.tuple([z.int()]), 'z.tuple'],
  [z.any(), 'z.any'],
  [z.bigint(), 'z.bigint'],
  [z.date(), 'z.date'],
  [z.literal(1n), 'the literal 1'],
  [z.intersection(z.string(), z.string()), 'z.intersection'],
  [z.xor([z.int(), z.boolean()]), 'z.xor'],
  [z.looseObject({}), 'an object with unknown keys'],
  [z.strictObject({}).refine(() => true), 'a refinement'],
  [z.union([z.int(), z.boolean()]).refine(() => true), 'a refinement'],
  [z.array(z.int()).refine(() => true), 'a refinement'],
  [
    z
      .string()
      .regex(/^\d{5}$/)
      .max(3),
    'a schema that admits no value',
  ],
  [z.int().min(3).max(2), 'a schema that admits no value'],
])('%#: it is refused by name, tool and parameter: %s %s', (schema, found) => {
  const expected = expect.objectContaining({
    code: 'GRAMMAR_UNSUPPORTED',
    exitCode: 2,
    message: expect.stringContaining(found),
    hint: expect.stringContaining('Supported: '),
  });
  expect(() => build('json', z.strictObject({ key: schema }))).toThrow(expected);
  if (!found.includes('admits no')) {
    expect(() => build('json', z.strictObject({ deep: z.array(z.strictObject({ key: schema })) }))).toThrow(
      `tool find, parameters.deep[].key: the decoding grammar does not support ${found}`,
    );
  }
});

test('the compact format refuses what it cannot write', () => {
  const refused = (parameters: z.ZodObject) => expect(() => build('compact', parameters));
  refused(z.strictObject({})).toThrow('tool find, parameters: the decoding grammar does not support 0 parameters');
  refused(z.strictObject({ a: z.int(), b: z.int() })).toThrow('2 parameters in the compact format');
  refused(z.strictObject({ a: z.string().nullable() })).toThrow(
    'parameters.a: the decoding grammar does not support a union with strings',
  );
  refused(z.strictObject({ a: z.union([z.string(), z.int()]) })).toThrow('a union with strings');
  refused(z.strictObject({ a: z.literal(['1', 1]) })).toThrow('a union with strings');
  refused(z.strictObject({ a: z.int().optional() })).toThrow(
    'parameters.a: the decoding grammar does not support z.optional',
  );
  refused(z.strictObject({ a: z.int() }).refine(() => true)).toThrow('a refinement');
  const answer = defineTool({
    name: 'answer',
    description: '',
    parameters: z.strictObject({ a: z.int() }),
    effect: 'read',
  });
  expect(() => actionGrammar({ format: 'compact', tools: [answer], answer: z.string() }, new Tokenizer([]))).toThrow(
    'a tool called "answer"',
  );
});

test.each(['compact', 'json'] as const)('the final answer is a string (%s)', (format) => {
  const answer = z.string().nullable() as unknown as z.ZodType<string>;
  expect(() => build(format, z.strictObject({ a: z.int() }), answer)).toThrow(
    'answer: the decoding grammar does not support z.nullable',
  );
});

test('patterns that have no string in common, and too many states to see it, are refused', () => {
  const schema = z
    .string()
    .regex(/a.{30}$/)
    .regex(/^[ab]*$/)
    .regex(/c/);
  expect(() => build('json', z.strictObject({ a: schema }))).toThrow(
    expect.objectContaining({ code: 'GRAMMAR_TOO_LARGE' }),
  );
});
