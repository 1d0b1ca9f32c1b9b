import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { lockRun } from '../../src/io/run-lock.ts';

let run: string;
beforeEach(() => {
  run = mkdtempSync(join(tmpdir(), 'isogym-lock-'));
});
afterEach(() => rmSync(run, { recursive: true }));

test('a run is written to by one process at a time, by whatever path it is named', async () => {
  const lock = await lockRun(run);
  await expect(lockRun(run)).rejects.toMatchObject({ code: 'RUN_IN_USE' });
  const alias = `${run}-alias`;
  symlinkSync(run, alias);
  await expect(lockRun(alias)).rejects.toMatchObject({ code: 'RUN_IN_USE' });
  rmSync(alias);
  lock.release();
  (await lockRun(run)).release();
});

test('runs do not hinder each other', async () => {
  const other = mkdtempSync(join(tmpdir(), 'isogym-lock-'));
  const locks = [await lockRun(run), await lockRun(other)];
  for (const lock of locks) lock.release();
  rmSync(other, { recursive: true });
});

test('a killed process leaves nothing locked', async () => {
  const module = new URL('../../src/io/run-lock.ts', import.meta.url).href;
  const script = `
    const { lockRun } = await import(${JSON.stringify(module)});
    await lockRun(${JSON.stringify(run)});
    console.log('held');
    setInterval(() => undefined, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await new Promise((resolve) => child.stdout.once('data', resolve));
  await expect(lockRun(run)).rejects.toMatchObject({ code: 'RUN_IN_USE' });
  const closed = new Promise((resolve) => child.on('close', resolve));
  child.kill('SIGKILL');
  await closed;
  (await lockRun(run)).release();
});
