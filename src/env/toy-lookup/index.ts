/** @module toy-lookup: "what is the combined population of X and Y?", two lookups and one sum. Written with the public API alone. */
import { z } from 'zod';
import { defineEnvironment, defineTool } from '../index.ts';
import { scripts } from './scripts.ts';
import { tabular } from './tabular.ts';
import { lookupTask, PLACES, PROMPT } from './tasks.ts';

/**
 * Renders compactly: every place, fact, sum and operator is one token, so a prompt has 5 tokens, a lookup with its
 * observation 4, a calculation with its at most 7, an answer 3: at most 40 an episode of 5 steps. 488 ids, bytes included.
 */
export default defineEnvironment({
  name: 'toy-lookup',
  options: z.strictObject({
    values: z.int().min(2).max(99).default(99).describe('Facts are drawn uniformly from 1 to this.'),
  }),
  world: new URL('./world.ts', import.meta.url),
  tools: [
    defineTool({
      name: 'lookup',
      description: 'The population of a place.',
      parameters: z.strictObject({ key: z.enum(PLACES) }),
      effect: 'read',
    }),
    defineTool({
      name: 'calculator',
      description: 'Adds or subtracts two whole numbers from 0 to 99, e.g. 12 + 34.',
      parameters: z.strictObject({ expression: z.string().regex(/^[1-9]?\d [+-] [1-9]?\d$/) }),
      effect: 'read',
    }),
  ],
  answer: z.string().regex(/^([1-9]?\d|1\d\d)$/),
  format: 'compact',
  words: [
    ...[PROMPT[0], PROMPT[1], 'lookup ', 'calculator ', 'answer ', ' + ', ' - '],
    ...PLACES,
    ...Array.from({ length: 200 }, (_, number) => String(number)),
  ],
  limits: { maxSteps: 5, maxTokens: 256, maxActionTokens: 8 },
  // Nothing runs inside but this folder's own code, which keeps all that it knows in what `create` returns.
  reset: 'state',
  task: lookupTask,
  scripts,
  tabular,
});
