/** @module From what the schema refuses to what a person reads: `expected …, found … (did you mean …?)`, at the place where it was written. */
import type { z } from 'zod';
import { inputError } from '../records/errors.ts';
import { nearest } from '../records/nearest.ts';
import { childOf, choices, expectation, found, jsonSchema, nodeAt, type SchemaNode } from './expectation.ts';
import type { Path } from './yaml-source.ts';

export interface ConfigProblem {
  readonly path: Path;
  /** `key`: the key itself is wrong or repeated. `value`: its value is. `missing`: there is none. */
  readonly about: 'key' | 'value' | 'missing';
  readonly text: string;
}

/** A longer list of keys hides the suggestion behind it. */
const MAX_LISTED = 10;

/** Everything that the schema has against `data`. */
export function problemsIn(schema: z.ZodType, data: unknown): readonly ConfigProblem[] {
  const result = schema.safeParse(data);
  if (result.success) return [];
  const root = jsonSchema(schema);
  // Of one value two checks may say the same.
  const told = new Map(
    result.error.issues
      .flatMap((issue) => problemsOf(issue, root, data))
      .map((problem) => [JSON.stringify(problem), problem]),
  );
  return [...told.values()];
}

/** Where a value of a config was written, as `file:line:column` or `argument N`. */
export type Where = (path: Path, about: ConfigProblem['about']) => string;

/**
 * An environment's options, which the config schema leaves open, by the environment's own schema.
 * @throws CONFIG_INVALID with a line `file:line:column environment.options.key: expected …, found …` for each mistake
 */
export function parseOptions<Options>(schema: z.ZodType<Options>, options: unknown, where?: Where): Options {
  const problems = problemsIn(schema, options);
  if (problems.length === 0) return schema.parse(options);
  const lines = problems.map(({ path, about, text }) => {
    const whole = ['environment', 'options', ...path];
    return `${[...(where ? [where(whole, about)] : []), whole.join('.')].join(' ')}: ${text}`;
  });
  throw inputError('CONFIG_INVALID', lines.join('\n'), "The environment's own module declares its options.");
}

function problemsOf(issue: z.core.$ZodIssue, schema: SchemaNode, data: unknown): readonly ConfigProblem[] {
  const path = issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part));
  const node = nodeAt(schema, path, data) ?? {};
  const value = path.reduce<unknown>(childOf, data);
  if (issue.code === 'unrecognized_keys') {
    const keys = Object.keys(node.properties ?? {});
    const known = knownKeys(keys);
    return issue.keys.map((key) => ({
      path: [...path, key],
      about: 'key',
      text: `expected ${known}, found ${key}${didYouMean(nearest(key, keys))}`,
    }));
  }
  const about = value === undefined || value === null ? 'missing' : 'value';
  if (issue.code === 'custom') return [{ path, about, text: issue.message }];
  return [
    { path, about, text: `expected ${expectation(node)}, found ${found(value)}${didYouMean(likely(value, node))}` },
  ];
}

function knownKeys(keys: readonly string[]): string {
  if (keys.length > MAX_LISTED) return 'a known key';
  if (keys.length > 1) return `one of ${keys.join(', ')}`;
  return keys.length === 1 ? `the key ${keys[0]}` : 'no key';
}

/** The choice that is spelt almost so, or the number that stands in quotes. */
function likely(value: unknown, node: SchemaNode): string | undefined {
  if (typeof value !== 'string') return undefined;
  const numeric = [node, ...(node.anyOf ?? [])].some((n) => n.type === 'integer' || n.type === 'number');
  if (numeric && value.trim() !== '' && Number.isFinite(Number(value))) return String(Number(value));
  return nearest(value, choices(node));
}

export function didYouMean(name: string | undefined): string {
  return name === undefined ? '' : ` (did you mean ${name}?)`;
}
