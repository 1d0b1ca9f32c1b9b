import { spawnSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkEnvironment } from '../../src/check/index.ts';
import { isogym } from './isogym.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const TEMPLATE = join(ROOT, 'templates', 'environment');
let cwd: string;
beforeAll(() => {
  // As with the package installed, but for its sources in place of the compiled ones.
  cwd = mkdtempSync(join(tmpdir(), 'isogym-init-'));
  mkdirSync(join(cwd, 'node_modules'));
  symlinkSync(ROOT, join(cwd, 'node_modules', 'isogym'));
  symlinkSync(
    dirname(realpathSync(join(ROOT, 'node_modules', 'zod', 'package.json'))),
    join(cwd, 'node_modules', 'zod'),
  );
  writeFileSync(join(cwd, 'package.json'), '{ "type": "module" }\n');
});
afterAll(() => rmSync(cwd, { recursive: true }));

test('init env writes a folder that passes its checks, its own test, and trains to a policy that solves it', () => {
  const made = isogym(cwd, 'init', 'env', 'find-it', '--json');
  expect(made.code).toBe(0);
  const { folder, files, install, check, train } = JSON.parse(made.stdout);
  expect({ folder, install }).toEqual({ folder: 'find-it', install: null });
  expect(readdirSync(join(cwd, 'find-it')).sort()).toEqual(files);
  expect(files).toEqual([
    'README.md',
    'check.test.ts',
    'config.yaml',
    'environment.ts',
    'transformer.yaml',
    'verifier.ts',
    'verify.ts',
    'world.ts',
  ]);
  for (const file of files) {
    const text = readFileSync(join(cwd, 'find-it', file), 'utf8');
    expect(text, file).not.toContain('my-environment');
    expect(text, file).not.toContain(ROOT);
  }
  const words = (command: string) => command.slice(command.indexOf(' check ') + 1).split(' ');
  const checked = isogym(cwd, ...words(check), '--json');
  expect(JSON.parse(checked.stdout)).toMatchObject({ passed: true });
  expect(checked.code).toBe(0);
  expect(train).toMatch(/ train --config find-it\/config\.yaml$/);
  const trained = isogym(cwd, 'train', '--config', 'find-it/config.yaml', 'backend=cpu', 'workers=1', '--json');
  expect(trained.stderr).not.toContain('error');
  const { run, policies } = JSON.parse(trained.stdout);
  expect(run).toBe('runs/find-it');
  const success = (name: string) => policies.find((row: { name: string }) => row.name === name).success.mean;
  expect(success('random')).toBeLessThan(0.5);
  expect(success('trained')).toBeGreaterThan(0.95);
  const { status, stdout } = spawnSync(process.execPath, ['--test', 'find-it/check.test.ts'], {
    cwd,
    encoding: 'utf8',
  });
  expect(stdout).toContain('find-it is sound');
  expect(status).toBe(0);
});

test('nothing that exists is written to', () => {
  writeFileSync(join(cwd, 'taken'), 'mine');
  const { code, stdout } = isogym(cwd, 'init', 'env', 'taken', '--json');
  expect(code).toBe(2);
  expect(JSON.parse(stdout).error).toMatchObject({ code: 'FOLDER_EXISTS', message: expect.stringContaining('taken') });
  expect(readFileSync(join(cwd, 'taken'), 'utf8')).toBe('mine');
});

test.each([
  ['My Env', 'my-env'],
  ['../up', 'up'],
  ['9', 'my-environment'],
  ['', 'my-environment'],
  ['a/b', 'a-b'],
  ['x'.repeat(61), 'x'.repeat(60)],
])('a name that is none is refused with one that is: %j', (name, hint) => {
  const { code, stdout } = isogym(cwd, 'init', 'env', name, '--json');
  expect(code).toBe(2);
  const { error } = JSON.parse(stdout);
  expect(error.code).toBe('NAME_INVALID');
  expect(error.hint).toContain(`e.g. ${hint}.`);
});

test('where its imports are not found, it says what to install', () => {
  const bare = mkdtempSync(join(tmpdir(), 'isogym-init-bare-'));
  const { stdout } = isogym(bare, 'init', 'env', 'find-it');
  expect(stdout).toMatch(
    /^find-it\/: README\.md, .*\n\nNext:\n {2}npm install PATH\/TO\/isogym-[\d.]+\.tgz zod {4}\(the tarball: .*\)\n/,
  );
  expect(readFileSync(join(bare, 'find-it', 'config.yaml'), 'utf8')).toMatch(/^name: find-it\n/);
  rmSync(bare, { recursive: true });
});

test('the template passes in the checkout too', async () => {
  const { checks } = await checkEnvironment({
    environment: join(TEMPLATE, 'environment.ts'),
    verifier: join(TEMPLATE, 'verifier.ts'),
  });
  expect(checks.filter(({ status }) => status !== 'passed')).toEqual([]);
});
