import { expect, it } from 'vitest';
import { z } from 'zod';
import { defineTool, toolSchema } from '../../src/env/tool.ts';

it('a tool is described to a policy by its name, its description and the JSON Schema of its arguments', () => {
  const tool = defineTool({
    name: 'calculator',
    description: 'Arithmetic.',
    parameters: z.object({ expression: z.string() }),
    effect: 'read',
  });
  expect(toolSchema(tool)).toEqual({
    name: 'calculator',
    description: 'Arithmetic.',
    parameters: {
      type: 'object',
      properties: { expression: { type: 'string' } },
      required: ['expression'],
      additionalProperties: false,
    },
  });
});
