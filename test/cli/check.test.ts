import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { isogym } from './isogym.ts';

const cwd = mkdtempSync(join(tmpdir(), 'isogym-check-cli-'));
afterAll(() => rmSync(cwd, { recursive: true }));
const SMALL = new URL('../check/fixtures/small/environment.ts', import.meta.url);

test('one line for each check, what to do under one that fails, and 1', () => {
  const broken = `import good from '${SMALL.href}';\nexport default { ...good, limits: { ...good.limits, maxSteps: 1 } };\n`;
  writeFileSync(join(cwd, 'broken.ts'), broken);
  const { code, stdout, stderr } = isogym(cwd, 'check', './broken.ts', '--verifier', 'exact-answer');
  expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
  expect(stdout).toMatch(/^ok {6}tasks +24 tasks, asked for twice/m);
  expect(stdout).toMatch(/^FAILED {2}limits +the oracle cannot finish: .*\n +→ Raise limits\.maxSteps/m);
  expect(stdout).toMatch(/\n\nsmall with exact-answer: 13 passed, 2 failed, 0 skipped\n$/);
});

test('--json gives one object; options are the environment’s', () => {
  const { code, stdout } = isogym(cwd, 'check', 'toy-lookup', 'values=5', '--json');
  expect(code).toBe(0);
  const report = JSON.parse(stdout);
  expect(report).toMatchObject({ environment: 'toy-lookup', verifier: null, passed: true });
  for (const check of report.checks) {
    expect(check).toEqual({ name: expect.any(String), status: expect.any(String), seen: expect.any(String) });
  }
});

test.each<[readonly string[], string, RegExp]>([
  [['toy-look'], 'MODULE_NOT_FOUND', /did you mean toy-lookup/],
  [['./nothing.ts'], 'MODULE_NOT_FOUND', /found nothing at/],
  [
    ['toy-lookup', 'values=1'],
    'CONFIG_INVALID',
    /environment\.options\.values: expected a whole number from 2 to 99, found 1/,
  ],
  [['toy-lookup', 'values'], 'USAGE', /expected key=value, found "values"/],
  [['toy-lookup', '--verifier', 'exact'], 'MODULE_NOT_FOUND', /verifier/],
  [[], 'USAGE', /missing required argument/],
])('%j is told with 2', (args, error, message) => {
  const { code, stdout } = isogym(cwd, 'check', ...args, '--json');
  expect(code).toBe(2);
  expect(JSON.parse(stdout).error).toMatchObject({ code: error, message: expect.stringMatching(message) });
});
