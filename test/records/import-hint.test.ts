import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { importEnvironment } from '../../src/env/load.ts';
import { importHint } from '../../src/records/import-hint.ts';
import { importVerifier } from '../../src/verifiers/load.ts';

const folder = mkdtempSync(join(tmpdir(), 'isogym-import-'));
afterAll(() => rmSync(folder, { recursive: true }));

test.each([
  ['isogym', /npm install PATH\/TO\/isogym\.tgz .*npm run pack:package/],
  ['no-such-package', /^In the module's folder, or one above it: npm install no-such-package$/],
])('a module that lacks the package %s is told how to get it, as environment and as verifier', async (name, hint) => {
  const file = join(folder, `${name}.mjs`);
  writeFileSync(file, `import '${name}';\n`);
  const { href } = pathToFileURL(file);
  for (const load of [importEnvironment, importVerifier]) {
    await expect(load(href)).rejects.toMatchObject({
      message: expect.stringContaining(`Cannot find package '${name}'`),
      hint: expect.stringMatching(hint),
      exitCode: 2,
    });
  }
});

test('of anything else nothing is said', () => {
  for (const cause of [undefined, null, 'x', new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' }]) {
    expect(importHint(cause)).toEqual({});
  }
});
