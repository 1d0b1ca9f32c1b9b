/** @module A tool's declaration. One zod schema is the source of validation, JSON Schema, prompt text, types and the decoding grammar. */
import { z } from 'zod';
import { Declared, isSchema, MAX_TIMEOUT_MS, shown } from '../records/declaration.ts';
import { inputError } from '../records/errors.ts';
import type { JsonObject } from '../records/json.ts';
import type { PublicTask } from '../records/task.ts';

/** What a call may change: nothing (`read`), something that repeating does not change again (`idempotent`), or more (`write`). Retries follow from it. */
export type ToolEffect = 'read' | 'idempotent' | 'write';

/**
 * The declaration lives outside the isolate; the implementation, a function of the same name, inside it (see `World`).
 */
export interface Tool {
  /** An identifier: a letter or `_`, then letters, digits and `_`; at most 64 characters. */
  readonly name: string;
  /** The only thing that a policy has to decide when the tool applies: written as a prompt. */
  readonly description: string;
  /** A strict object schema. Parameters are rendered in its key order. Its refinements, defaults and transforms are pure: what arguments come to follows from the arguments alone, and is worked out once. */
  readonly parameters: z.ZodObject;
  readonly effect: ToolEffect;
  /** Bound on one execution: whole milliseconds, 1 to 2^31 − 1. Default 1000. */
  readonly timeoutMs: number;
  /** Cap on the observation, in UTF-16 code units, applied before it enters the transcript; at least 64, so that the mark of a cut output fits. Default 2000. */
  readonly maxOutput: number;
  /**
   * The permission boundary, which a policy cannot cross whatever it writes: asked outside the isolate before a call is executed, with
   * its valid arguments and the task's public part, it answers `true`, or in a sentence why not. The policy then observes the
   * reason (`not-permitted`), and nothing has run. For what cannot be taken back: a folder that is not the task's, a payment
   * without the approval that the task carries. Pure, like the schema. Without one every valid call may run.
   */
  readonly permission?: Permission;
}

export type Permission = (args: JsonObject, task: PublicTask) => true | string;

const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

const KEYS = ['name', 'description', 'parameters', 'effect', 'timeoutMs', 'maxOutput', 'permission'];

/**
 * Fills the defaults and makes `parameters` strict: an unknown argument is an error, never dropped.
 * @throws INVALID_TOOL naming every problem at once.
 */
export function defineTool(
  tool: Omit<Tool, 'timeoutMs' | 'maxOutput'> & Partial<Pick<Tool, 'timeoutMs' | 'maxOutput'>>,
): Tool {
  const filled: Tool = { timeoutMs: 1000, maxOutput: 2000, ...tool };
  const problems = toolProblems(filled);
  if (problems.length > 0) {
    throw inputError(
      'INVALID_TOOL',
      `tool ${shown(filled.name)}: ${problems.join('; ')}`,
      'Correct them in the call of defineTool.',
    );
  }
  return { ...filled, parameters: filled.parameters.strict() };
}

/** Of a tool with its defaults filled in: `path: expected …, found …` each. */
export function toolProblems(tool: unknown): readonly string[] {
  const declared = new Declared(tool);
  declared.only(KEYS);
  declared.expect(
    'name',
    'an identifier of at most 64 characters: a letter or _, then letters, digits and _',
    (name) => typeof name === 'string' && IDENTIFIER.test(name) && name !== '__proto__',
  );
  declared.expect('description', 'a text', (description) => typeof description === 'string');
  declared.expect('parameters', 'an object schema of zod 4, e.g. z.strictObject({ key: z.string() })', (parameters) =>
    isSchema(parameters, 'object'),
  );
  declared.oneOf('effect', ['read', 'idempotent', 'write']);
  declared.wholeNumber('timeoutMs', 1, MAX_TIMEOUT_MS);
  declared.wholeNumber('maxOutput', 64);
  declared.expect(
    'permission',
    'a function of the arguments and the task, or nothing',
    (permission) => permission === undefined || typeof permission === 'function',
  );
  return declared.problems;
}

/** What a policy is told of a tool, in the form that model providers use. */
export interface ToolSchema {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly parameters: JsonObject;
}

export function toolSchema({ name, description, parameters }: Tool): ToolSchema {
  const { $schema: _, ...schema } = z.toJSONSchema(parameters, { unrepresentable: 'any' });
  return { name, description, parameters: schema as JsonObject };
}
