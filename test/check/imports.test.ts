import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

it('importing isogym/check loads no tensors, so that an author’s tests begin at once', async () => {
  const check = new URL('../../src/check/index.ts', import.meta.url).href;
  const program = `
    await import(${JSON.stringify(check)});
    const { createRequire } = await import('node:module');
    console.log(JSON.stringify(Object.keys(createRequire(${JSON.stringify(check)}).cache)));
  `;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program]);
  const loaded = (JSON.parse(stdout) as string[]).join('\n');
  expect(loaded).toContain('seedrandom');
  expect(loaded).not.toContain('tensorflow');
});
