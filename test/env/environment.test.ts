import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { defineEnvironment, type EnvironmentDefinition } from '../../src/env/environment.ts';
import { defineTool } from '../../src/env/tool.ts';
import type { IsogymError } from '../../src/records/errors.ts';

const tool = defineTool({ name: 'look', description: 'Looks.', parameters: z.object({}), effect: 'read' });
const definition: EnvironmentDefinition<unknown> = {
  name: 'small',
  options: z.unknown(),
  world: new URL('file:///world.ts'),
  tools: [tool],
  answer: z.string(),
  task: () => ({ id: 't', prompt: '', public: null, held: null }),
};

function refusal(make: () => unknown): IsogymError {
  try {
    make();
  } catch (error) {
    return error as IsogymError;
  }
  throw new Error('it was not refused');
}

describe('defineEnvironment', () => {
  it('fills the defaults, and a limit that is given leaves the others', () => {
    expect(defineEnvironment({ ...definition, limits: { maxSteps: 3 } })).toMatchObject({
      format: 'json',
      words: [],
      reset: 'context',
      isolation: 'thread',
      memoryMiB: 32,
      scripts: {},
      limits: { maxSteps: 3, maxTokens: 4096, maxActionTokens: 512, maxCalls: 100, maxMalformed: 3 },
    });
  });

  it('names every problem at once', () => {
    const error = refusal(() =>
      defineEnvironment({
        ...definition,
        name: 'Small one',
        tools: [tool, tool],
        words: ['a', '', 'a'],
        limits: { maxSteps: 0, maxTokens: 1.5 },
        memoryMiB: 4,
      }),
    );
    expect(error).toMatchObject({ code: 'INVALID_ENVIRONMENT', exitCode: 2 });
    for (const part of [
      'name: expected kebab-case',
      'tools: expected different names, found "look" twice',
      'words: expected non-empty strings',
      'words: expected different strings, found "a" twice',
      'limits.maxSteps: expected a positive integer, found 0',
      'limits.maxTokens: expected a positive integer, found 1.5',
      'memoryMiB: expected an integer ≥ 8, found 4',
    ]) {
      expect(error.message).toContain(part);
    }
  });
});

describe('defineTool', () => {
  it('fills the defaults and refuses unknown arguments from then on', () => {
    expect(tool).toMatchObject({ timeoutMs: 1000, maxOutput: 2000 });
    expect(tool.parameters.safeParse({ more: 1 }).success).toBe(false);
  });

  it.each([
    [{ name: 'two words' }],
    [{ name: '' }],
    [{ name: '__proto__' }],
    [{ timeoutMs: 0 }],
    [{ timeoutMs: Number.POSITIVE_INFINITY }],
    [{ maxOutput: 63 }],
  ])('refuses %j', (wrong) => {
    const error = refusal(() => defineTool({ ...tool, ...wrong }));
    expect(error).toMatchObject({ code: 'INVALID_TOOL', exitCode: 2 });
    expect(error.message).toContain('expected');
  });
});
