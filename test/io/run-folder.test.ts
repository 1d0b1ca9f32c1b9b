import { execFile } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { loadConfig } from '../../src/io/config-file.ts';
import { RunFolder } from '../../src/io/run-folder.ts';
import { manifestOf, someConfig } from './made.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'isogym-run-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

const create = (name = 'job') => RunFolder.create({ dir, name, config: someConfig, manifest: manifestOf(someConfig) });

test('a run folder that exists is never written to: the new run gets a number', () => {
  const names = [create(), create(), create()].map((run) => run.name);
  expect(names).toEqual(['job', 'job-2', 'job-3']);
});

test('processes that begin runs at once never share a folder', async () => {
  const script = new URL('./fixtures/make-runs.ts', import.meta.url).pathname;
  const outputs = await Promise.all(
    Array.from({ length: 3 }, () => promisify(execFile)(process.execPath, [script, dir, '8'])),
  );
  const names = outputs.flatMap(({ stdout }) => stdout.trim().split('\n'));
  expect(names).toHaveLength(24);
  expect(new Set(names).size).toBe(24);
  expect(readdirSync(dir).sort()).toEqual([...names].sort());
});

test('the config in a run folder is one that can be run again', () => {
  const run = create();
  const { config } = loadConfig({ file: join(run.path, 'config.yaml'), overrides: [], cwd: dir });
  expect(config).toEqual({ ...someConfig, name: 'job' });
});

test('the manifest holds no clock time, so two runs of one config have the same', () => {
  const [a, b] = [create(), create()];
  expect(readFileSync(join(a.path, 'manifest.json'), 'utf8')).toBe(readFileSync(join(b.path, 'manifest.json'), 'utf8'));
});

test('a run is found by its path and by its name in runs/', () => {
  mkdirSync(join(dir, 'runs'));
  const { path } = RunFolder.create({
    dir: join(dir, 'runs'),
    name: 'job',
    config: someConfig,
    manifest: manifestOf(someConfig),
  });
  for (const name of ['job', 'runs/job', path]) expect(RunFolder.open(name, dir).path).toBe(path);
  expect(() => RunFolder.open('jop', dir)).toThrow(
    'expected the folder of a run, found no manifest.json in jop (did you mean job?)',
  );
  const file = join(path, 'config.yaml');
  expect(() => RunFolder.open(file, dir)).toThrow(
    expect.objectContaining({
      code: 'RUN_NOT_FOUND',
      message: `expected the folder of a run, found the file ${file}`,
      hint: expect.stringContaining(`isogym show ${path}`),
    }),
  );
});

test('a run of another format, and a broken manifest, are refused', () => {
  const { path } = create();
  writeFileSync(join(path, 'manifest.json'), JSON.stringify({ ...manifestOf(someConfig), format: 'isogym.run/0' }));
  expect(() => RunFolder.open(path, dir)).toThrow(expect.objectContaining({ code: 'RUN_BROKEN' }));
  writeFileSync(join(path, 'manifest.json'), '{');
  expect(() => RunFolder.open(path, dir)).toThrow(expect.objectContaining({ code: 'RUN_BROKEN' }));
});

async function records(run: RunFolder, log: 'metrics' | 'trajectories'): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const record of run.records(log, () => undefined)) found.push(record);
  return found;
}

test('truncating leaves what a checkpoint knows of, and appending goes on behind it', async () => {
  const run = create();
  for (const iteration of [0, 1, 2]) {
    run.append('metrics', { iteration });
    run.append('trajectories', { iteration, part: 'a' });
    run.append('trajectories', { iteration, part: 'b' });
    run.append('timings', { iteration });
  }
  run.close();
  appendFileSync(run.logPath('trajectories'), '{"iteration":3,"par');
  await run.truncate((record) => (record as { iteration: number }).iteration >= 2);
  run.append('metrics', { iteration: 2, again: true });
  run.append('trajectories', { iteration: 2, again: true });
  run.close();
  expect(await records(run, 'metrics')).toEqual([{ iteration: 0 }, { iteration: 1 }, { iteration: 2, again: true }]);
  expect(await records(run, 'trajectories')).toEqual([
    { iteration: 0, part: 'a' },
    { iteration: 0, part: 'b' },
    { iteration: 1, part: 'a' },
    { iteration: 1, part: 'b' },
    { iteration: 2, again: true },
  ]);
  expect(readFileSync(run.logPath('timings'), 'utf8').split('\n')).toHaveLength(4);
});

test('truncating where only the torn line comes after the checkpoint lets appending begin a line', async () => {
  const run = create();
  run.append('metrics', { iteration: 0 });
  run.close();
  appendFileSync(run.logPath('metrics'), '{"iter');
  await run.truncate(() => false);
  run.append('metrics', { iteration: 1 });
  run.close();
  expect(await records(run, 'metrics')).toEqual([{ iteration: 0 }, { iteration: 1 }]);
});

test('the latest checkpoints are kept, and one that a kill left unfinished is none', () => {
  const run = create();
  for (const iteration of [10, 2, 20]) run.saveCheckpoint(iteration, { 'a.bin': new Uint8Array([iteration]) }, 2);
  mkdirSync(join(run.path, 'checkpoints', '000030.tmp'));
  expect(run.checkpoints().map((c) => c.iteration)).toEqual([10, 20]);
  const { path } = run.latestCheckpoint();
  expect([...readFileSync(join(path, 'a.bin'))]).toEqual([20]);
  run.saveCheckpoint(30, { 'a.bin': 'new' }, 2);
  expect(readdirSync(join(run.path, 'checkpoints')).sort()).toEqual(['000020', '000030']);
});

test('a checkpoint written again for its iteration takes the place of the first', () => {
  const run = create();
  for (const content of ['a', 'b', 'c']) {
    const { path } = run.saveCheckpoint(0, { x: content }, 1);
    expect(run.checkpoints()).toMatchObject([{ iteration: 0, path }]);
    expect(readFileSync(join(run.latestCheckpoint().path, 'x'), 'utf8')).toBe(content);
  }
});

test('a run without a checkpoint says what to do', () => {
  expect(() => create().latestCheckpoint()).toThrow(expect.objectContaining({ code: 'NO_CHECKPOINT', exitCode: 2 }));
});

test('a file of the run is written whole', () => {
  const run = create();
  run.write('summary.json', '1');
  run.write('summary.json', '22');
  expect(readFileSync(join(run.path, 'summary.json'), 'utf8')).toBe('22');
  expect(existsSync(join(run.path, 'summary.json.tmp'))).toBe(false);
});

test('a folder that cannot be made is told with its path, whatever refuses it', () => {
  writeFileSync(join(dir, 'file'), 'x');
  const refused = [join(dir, 'file'), join(dir, 'file', 'x'), `${dir}/${'x'.repeat(300)}`];
  // Here Node's own `mkdir -p` goes round for ever.
  if (process.platform === 'linux') refused.push('/proc/isogym/x');
  for (const runs of refused) {
    const make = () =>
      RunFolder.create({ dir: runs, name: 'job', config: someConfig, manifest: manifestOf(someConfig) });
    expect(make).toThrow(`cannot make the run folder ${join(runs, 'job')}: `);
  }
});
