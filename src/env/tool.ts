/** @module A tool's declaration. One zod schema is the source of validation, JSON Schema, prompt text, types and the decoding grammar. */
import type { z } from 'zod';

/** What a call may change: nothing (`read`), something that repeating does not change again (`idempotent`), or more (`write`). Retries follow from it. */
export type ToolEffect = 'read' | 'idempotent' | 'write';

/**
 * The declaration lives outside the isolate; the implementation, a function of the same name, inside it (see `World`).
 */
export interface Tool {
  readonly name: string;
  /** The only thing that a policy has to decide when the tool applies: written as a prompt. */
  readonly description: string;
  /** A strict object schema. Parameters are rendered in its key order. */
  readonly parameters: z.ZodObject;
  readonly effect: ToolEffect;
  /** Bound on one execution. Default 1000. */
  readonly timeoutMs: number;
  /** Cap on the observation, in UTF-16 code units, applied before it enters the transcript. Default 2000. */
  readonly maxOutput: number;
}

/** Fills the defaults. @throws INVALID_TOOL where the name is not an identifier. */
export function defineTool(
  tool: Omit<Tool, 'timeoutMs' | 'maxOutput'> & Partial<Pick<Tool, 'timeoutMs' | 'maxOutput'>>,
): Tool {
  return { timeoutMs: 1000, maxOutput: 2000, ...tool };
}
