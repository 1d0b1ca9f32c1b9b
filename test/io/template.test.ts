import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { writeTemplate } from '../../src/io/template.ts';

let cwd: string;
beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), 'isogym-template-'));
});
afterAll(() => rmSync(cwd, { recursive: true }));

test('a folder that cannot be made is told with its own hint', () => {
  const gone = join(cwd, 'gone');
  const refused = { code: 'FOLDER_REFUSED', hint: expect.stringMatching(/^cd to a folder/) };
  expect(() => writeTemplate('environment', 'mine', gone)).toThrow(expect.objectContaining(refused));
});

test('a failure midway leaves nothing behind, so that the name is free again', () => {
  let written = 0;
  const full = () => {
    if (++written === 3) throw new Error('ENOSPC: no space left on device');
  };
  expect(() => writeTemplate('environment', 'mine', cwd, full)).toThrow(/ENOSPC/);
  expect(existsSync(join(cwd, 'mine'))).toBe(false);
  expect(writeTemplate('environment', 'mine', cwd)).toContain('world.ts');
});
