/** @module my-environment passes all that `isogym check` looks at: `node --test` runs it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkEnvironment } from 'isogym/check';

test('my-environment is sound', async () => {
  const { checks } = await checkEnvironment({
    environment: new URL('./environment.ts', import.meta.url),
    verifier: new URL('./verifier.ts', import.meta.url),
  });
  assert.deepEqual(
    checks.filter(({ status }) => status === 'failed'),
    [],
  );
});
