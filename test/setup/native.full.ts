/** The whole route on this machine: pip, hash, unpack, compile, prove, use, again, remove. Skipped, loudly, where the package index is not there. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { BIN } from '../cli/isogym.ts';

const HOME = mkdtempSync(join(tmpdir(), 'isogym-native-'));
afterAll(() => rmSync(HOME, { recursive: true }));

function isogym(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [BIN, ...args, '--json'], {
    encoding: 'utf8',
    env: { ...process.env, ISOGYM_HOME: HOME },
  });
  return { code: status, answer: JSON.parse(stdout), stderr };
}

/** Whether pip reaches an index at all: any small package will do. */
function indexIsThere(): boolean {
  const asked = spawnSync('python3', ['-m', 'pip', 'download', '--no-deps', '--quiet', '--dest', HOME, 'wheel']);
  for (const file of readdirSync(HOME)) rmSync(join(HOME, file), { recursive: true });
  return asked.status === 0;
}

const there = indexIsThere();
if (!there) console.warn('SKIPPED: pip reaches no package index, so that `isogym setup native` was not tried');

test.skipIf(!there)(
  'setup native brings a backend that auto takes, a second run changes nothing, and remove undoes it',
  () => {
    expect(isogym('doctor').answer.auto).toBe('wasm');
    const first = isogym('setup', 'native', '--yes');
    expect(first, first.stderr).toMatchObject({ code: 0, answer: { kind: 'native', changed: true } });
    const second = isogym('setup', 'native', '--yes');
    expect(second).toMatchObject({ code: 0, answer: { changed: false, manifest: first.answer.manifest } });
    // As on a box that has another processor, or its GPU, since.
    const record = join(first.answer.folder, 'setup.json');
    writeFileSync(record, JSON.stringify({ ...first.answer.manifest, device: 'another' }));
    expect(isogym('setup', 'native').answer).toEqual(second.answer);
    expect(JSON.parse(readFileSync(record, 'utf8'))).toEqual(first.answer.manifest);
    const doctor = isogym('doctor').answer;
    expect(doctor.auto).toBe('native');
    expect(doctor.setups).toEqual([{ folder: first.answer.folder, ...first.answer.manifest }]);
    expect(isogym('setup', 'native', '--remove').answer).toEqual({ kind: 'native', removed: true });
    expect(isogym('doctor').answer.auto).toBe('wasm');
  },
);
