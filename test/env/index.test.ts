import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

it('importing the public API loads neither the pool nor tensors', async () => {
  const api = new URL('../../src/env/index.ts', import.meta.url).href;
  const program = `
    await import(${JSON.stringify(api)});
    const { createRequire } = await import('node:module');
    console.log(JSON.stringify(Object.keys(createRequire(${JSON.stringify(api)}).cache)));
  `;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program]);
  const loaded = (JSON.parse(stdout) as string[]).join('\n');
  expect(loaded).toContain('seedrandom');
  expect(loaded).not.toMatch(/piscina|tensorflow/);
});
