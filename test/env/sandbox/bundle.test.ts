import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { bundle } from '../../../src/env/sandbox/bundle.ts';
import { resolveModule } from '../../../src/env/sandbox/resolve-module.ts';
import type { IsogymError } from '../../../src/records/errors.ts';
import { hostOf } from './programs.ts';

const fixture = (name: string) => new URL(`./fixtures/${name}`, import.meta.url);

async function inCopy<T>(run: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'isogym-bundle-'));
  try {
    await cp(fixture('.'), folder, { recursive: true });
    return await run(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

it('a module and what it imports become one expression that runs inside', async () => {
  const script = await bundle(fixture('world.ts'));
  expect(script.trimEnd()).toMatch(/^\(function\(\)\{.*\}\)$/s);
  const host = hostOf(script);
  expect(host.open('null', 'seed').call('greet', '{"name":"you"}', 5000)).toEqual({ status: 'ok', text: 'hello you' });
  host.dispose();
});

it('async functions and dynamic imports fail where they are called, since no promise may exist inside', async () => {
  const host = hostOf(await bundle(fixture('world.ts')));
  for (const tool of ['asynchronous', 'dynamic']) {
    expect(host.open('null', 'seed').call(tool, '{}', 5000)).toEqual({
      status: 'error',
      message: 'Promise is not defined',
      transient: false,
    });
  }
  host.dispose();
});

it('the same sources give the same script wherever they lie, without a path of the machine in it', async () => {
  const here = await bundle(fixture('world.ts'));
  const elsewhere = await inCopy((folder) => bundle(pathToFileURL(join(folder, 'world.ts'))));
  expect(elsewhere).toBe(here);
  expect(here).not.toContain('fixtures');
});

it('beside a compiled build, x.ts is its x.js', async () => {
  await inCopy(async (folder) => {
    await rm(join(folder, 'parts.ts'));
    await writeFile(join(folder, 'parts.js'), "export default (name) => 'hello ' + name;");
    const asked = pathToFileURL(join(folder, 'parts.ts'));
    expect(resolveModule(asked).href).toBe(pathToFileURL(join(folder, 'parts.js')).href);
    expect(await bundle(asked)).toContain('hello ');
  });
});

it('a module that is not there, and one that needs Node, are errors that say where and what', async () => {
  const missing: IsogymError = await bundle(fixture('missing.ts')).catch((error) => error);
  expect(missing.code).toBe('MODULE_NOT_FOUND');
  expect(missing.message).toContain('missing.ts');
  const needsNode: IsogymError = await bundle(fixture('needs-node.ts')).catch((error) => error);
  expect(needsNode.code).toBe('BUNDLE_FAILED');
  expect(needsNode.message).toMatch(/needs-node\.ts:2:30: Could not resolve "node:fs"/);
  expect(needsNode.hint).toContain('import only modules');
});

it('a module that is no TypeScript is told at its line, and not as an import', async () => {
  await inCopy(async (folder) => {
    await writeFile(join(folder, 'typo.ts'), 'export default () => {\n  retrun 1;\n};\n');
    const typo: IsogymError = await bundle(pathToFileURL(join(folder, 'typo.ts'))).catch((error) => error);
    expect(typo.code).toBe('BUNDLE_FAILED');
    expect(typo.message).toMatch(/typo\.ts:2:10: Expected ";" but found "1"/);
    expect(typo.hint).toBe('Mend it there; nothing of it has run.');
  });
});
