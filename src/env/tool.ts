/** @module A tool's declaration. One zod schema is the source of validation, JSON Schema, prompt text, types and the decoding grammar. */
import { z } from 'zod';
import { inputError } from '../records/errors.ts';
import type { JsonObject } from '../records/json.ts';

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
  /** A strict object schema. Parameters are rendered in its key order. */
  readonly parameters: z.ZodObject;
  readonly effect: ToolEffect;
  /** Bound on one execution. Default 1000. */
  readonly timeoutMs: number;
  /** Cap on the observation, in UTF-16 code units, applied before it enters the transcript; at least 64, so that the mark of a cut output fits. Default 2000. */
  readonly maxOutput: number;
}

const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

/**
 * Fills the defaults and makes `parameters` strict: an unknown argument is an error, never dropped.
 * @throws INVALID_TOOL where the name is not an identifier, or a limit is too small.
 */
export function defineTool(
  tool: Omit<Tool, 'timeoutMs' | 'maxOutput'> & Partial<Pick<Tool, 'timeoutMs' | 'maxOutput'>>,
): Tool {
  const { timeoutMs = 1000, maxOutput = 2000 } = tool;
  if (!IDENTIFIER.test(tool.name) || tool.name === '__proto__') {
    throw inputError(
      'INVALID_TOOL',
      `tool name: expected an identifier of at most 64 characters, found ${JSON.stringify(tool.name)}`,
      'Use a letter or _, then letters, digits and _.',
    );
  }
  if (!(Number.isFinite(timeoutMs) && timeoutMs > 0)) {
    throw inputError('INVALID_TOOL', `tool ${tool.name}: timeoutMs: expected milliseconds > 0, found ${timeoutMs}`);
  }
  if (!(Number.isInteger(maxOutput) && maxOutput >= 64)) {
    throw inputError('INVALID_TOOL', `tool ${tool.name}: maxOutput: expected an integer ≥ 64, found ${maxOutput}`);
  }
  return { ...tool, parameters: tool.parameters.strict(), timeoutMs, maxOutput };
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
