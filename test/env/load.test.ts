import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { loadEnvironment } from '../../src/env/load.ts';
import type { IsogymError } from '../../src/records/errors.ts';
import { TOY_LOOKUP, TRIAL } from '../fixtures/rollouts.ts';

const here = fileURLToPath(new URL('.', import.meta.url));
const refusal = (wanted: string): Promise<IsogymError> =>
  loadEnvironment(wanted, here).then(
    () => expect.unreachable(),
    (error) => error,
  );

it('finds a built-in environment by name, and one of the user’s own by path or URL', async () => {
  expect(await loadEnvironment('toy-lookup', here)).toMatchObject({
    url: TOY_LOOKUP,
    environment: { name: 'toy-lookup' },
  });
  for (const wanted of ['../fixtures/trial/index.ts', fileURLToPath(TRIAL), TRIAL]) {
    expect(await loadEnvironment(wanted, here)).toMatchObject({ url: TRIAL, environment: { name: 'trial' } });
  }
});

it('an unknown name is an error with the nearest one', async () => {
  expect(await refusal('toy-lokup')).toMatchObject({
    code: 'UNKNOWN_ENVIRONMENT',
    message: 'expected a built-in environment (toy-lookup) or a path to a module, found "toy-lokup"',
    hint: 'did you mean toy-lookup?',
    exitCode: 2,
  });
});

it('a path that leads nowhere, and a module that is no environment, say so', async () => {
  expect(await refusal('./nowhere.ts')).toMatchObject({ code: 'MODULE_NOT_FOUND', exitCode: 2 });
  const none = await refusal('../fixtures/rollouts.ts');
  expect(none).toMatchObject({ code: 'ENVIRONMENT_BROKEN', exitCode: 2 });
  expect(none.message).toContain('expected a default export made by defineEnvironment, found none');
  const wrong = await refusal('../fixtures/trial/world.ts');
  expect(wrong.message).toContain('found function');
});
