/** @module js-puzzles: write a small JavaScript function, try it, submit it. The policy's code runs in contexts of its own. Written with the public API alone. */
import { z } from 'zod';
import { defineEnvironment, defineTool } from '../index.ts';
import { scripts } from './scripts.ts';
import { puzzleTask } from './tasks.ts';

/** Longest function, in UTF-16 code units. */
const MAX_CODE = 2000;

export default defineEnvironment({
  name: 'js-puzzles',
  options: z.strictObject({}),
  world: new URL('./world.ts', import.meta.url),
  tools: [
    defineTool({
      name: 'run',
      description:
        'Runs a JavaScript function on one input, given as JSON, and gives its result as JSON, or says what went wrong: refused, error, timeout, out-of-memory, too-deep, too-much-output, too-many-calls.',
      parameters: z.strictObject({ code: z.string().max(MAX_CODE), input: z.string().max(MAX_CODE) }),
      effect: 'read',
      // Its own bound is the code's, below.
      timeoutMs: 5000,
    }),
  ],
  answer: z.string().max(MAX_CODE),
  limits: { maxSteps: 6, maxTokens: 8192, maxActionTokens: 2048 },
  code: { timeoutMs: 250, memoryMiB: 32, maxOutput: 2000, maxRuns: 16 },
  task: puzzleTask,
  scripts,
});
