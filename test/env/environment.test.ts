import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { defineEnvironment, type EnvironmentDefinition } from '../../src/env/environment.ts';
import { heapLimitHolds } from '../../src/env/sandbox/isolated-vm.ts';
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
      isolation: heapLimitHolds() ? 'thread' : 'process',
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

describe('what an author can hand in wrong', () => {
  const odd = definition as unknown as Record<string, unknown>;
  const make = (more: object) => () => defineEnvironment({ ...odd, ...more } as never);

  it.each([
    [{ options: {} }, 'options: expected a schema of zod 4, e.g. z.strictObject({}), found an object'],
    [{ world: './world.ts' }, `world: expected new URL('./world.ts', import.meta.url), found "./world.ts"`],
    [{ world: new URL('https://example.org/world.ts') }, 'found https://example.org/world.ts'],
    [{ answer: undefined }, 'answer: expected a schema of zod 4 for texts, e.g. z.string(), found nothing'],
    [{ task: {} }, 'task: expected a function (seed, index, options) → task, found an object'],
    [{ tools: undefined }, 'tools: expected an array of tools made by defineTool, found nothing'],
    [{ tools: [null] }, 'tools: expected tools made by defineTool, found null at [0]'],
    [{ tools: [{ name: 'look' }] }, 'tools[0]: description: expected a text, found nothing'],
    [{ format: 'compct' }, 'format: expected one of compact, json, found "compct" (did you mean compact?)'],
    [{ reset: 'never' }, 'reset: expected one of state, context, isolate, found "never"'],
    [{ words: 'abc' }, 'words: expected an array of non-empty strings, found "abc"'],
    [{ scripts: { oracle: 'x' } }, 'scripts.oracle: expected a function (view) → action, found "x"'],
    [{ scripts: [] }, 'scripts: expected an object, found an array'],
    [{ limits: { maxStep: 3 } }, 'limits.maxStep: expected no such key (did you mean maxSteps?)'],
    [{ script: {} }, 'script: expected no such key (did you mean scripts?)'],
    [{ memoryMiB: Number.NaN }, 'memoryMiB: expected an integer ≥ 8, found NaN'],
    [{ code: { timeoutMs: 0.5 } }, 'code.timeoutMs: expected an integer from 1 to 2147483647, found 0.5'],
    [{ code: {}, isolation: 'thread' }, 'isolation: expected process'],
    [{ tabular: { states: 0, actions: [] } }, 'tabular.states: expected a positive integer, found 0'],
    [{ tabular: { states: 0, actions: [] } }, 'tabular.actions: expected at least two actions, found none'],
    [
      { tabular: { states: 2, actions: ['a'], observe: () => 0, act: () => ({ final: '' }) } },
      'tabular.actions: expected at least two actions, found one, of which nothing can be learnt',
    ],
    [{ tabular: { states: 2, actions: ['a', 'a'] } }, 'tabular.actions: expected different strings, found "a" twice'],
    [{ tabular: { states: 2, actions: ['a'], act: () => ({ final: '' }) } }, 'tabular.observe: expected a function'],
  ])('%j', (wrong, message) => {
    const error = refusal(make(wrong));
    expect(error).toMatchObject({ code: 'INVALID_ENVIRONMENT', exitCode: 2 });
    expect(error.message).toContain(message);
  });

  it.each([[undefined], [null], ['treasure']])('no declaration at all: %j', (nothing) => {
    expect(refusal(() => defineEnvironment(nothing as never))).toMatchObject({ code: 'INVALID_ENVIRONMENT' });
  });

  it('a schema of another zod, which has no _zod', () => {
    const other = { safeParse: () => ({ success: true }), parse: () => ({}) };
    expect(refusal(make({ options: other })).message).toContain('options: expected a schema of zod 4');
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
    [{ timeoutMs: 0.5 }],
    [{ timeoutMs: 2 ** 31 }],
    [{ maxOutput: 63 }],
    [{ description: 3 as never }],
    [{ parameters: { key: z.string() } as never }],
    [{ parameters: z.string() as never }],
    [{ effect: 'reads' as never }],
    [{ timeout: 5 } as never],
  ])('refuses %j', (wrong) => {
    const error = refusal(() => defineTool({ ...tool, ...wrong }));
    expect(error).toMatchObject({ code: 'INVALID_TOOL', exitCode: 2 });
    expect(error.message).toContain('expected');
  });
});
