import { expect, it } from 'vitest';
import { importEnvironment } from '../../src/env/load.ts';
import type { IsogymError } from '../../src/records/errors.ts';
import { TOY_LOOKUP, TRIAL } from '../fixtures/rollouts.ts';

const refusal = (module: string): Promise<IsogymError> =>
  importEnvironment(new URL(module, import.meta.url).href).then(
    () => expect.unreachable(),
    (error) => error,
  );

it('an environment is the default export of its module', async () => {
  expect(await importEnvironment(TOY_LOOKUP)).toMatchObject({ name: 'toy-lookup' });
  expect(await importEnvironment(TRIAL)).toMatchObject({ name: 'trial' });
});

it('a path that leads nowhere, and a module that is no environment, say so', async () => {
  for (const [module, text] of [
    ['./nowhere.ts', 'cannot be imported'],
    ['../fixtures/rollouts.ts', 'expected a default export made by defineEnvironment, found none'],
    ['../fixtures/trial/world.ts', 'found a function'],
    [
      './fixtures/look-alike.ts',
      'tools[0]: effect: expected one of read, idempotent, write, found "reads" (did you mean read?)',
    ],
    ['./fixtures/look-alike.ts', 'limits.maxSteps: expected a positive integer, found nothing'],
    ['./fixtures/look-alike.ts', 'tabular.act: expected a function'],
  ] as const) {
    const error = await refusal(module);
    expect(error).toMatchObject({ code: 'ENVIRONMENT_BROKEN', exitCode: 2 });
    expect(error.message).toContain(text);
  }
});
