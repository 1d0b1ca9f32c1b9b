import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isogym, isogymInterrupted } from './isogym.ts';

let cwd: string;
beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), 'isogym-train-'));
});
afterAll(() => rmSync(cwd, { recursive: true }));

const TINY = [
  'tasks.train=20',
  'tasks.heldOut=10',
  'evaluation.tasks=10',
  'batch.groups=2',
  'group.size=2',
  'workers=1',
  'backend=cpu',
];
const tabular = (name: string, ...more: string[]) => [
  'train',
  '--config',
  'toy-lookup-tabular.yaml',
  `name=${name}`,
  ...TINY,
  ...more,
];
const lines = (run: string, log: string) =>
  readFileSync(join(cwd, 'runs', run, log), 'utf8')
    .trimEnd()
    .split('\n');

test('train, eval and show give one object each with --json, and progress on stderr', () => {
  const trained = isogym(cwd, ...tabular('whole', 'iterations=3'), '--json');
  expect(trained.code).toBe(0);
  expect(trained.stderr).toMatch(/^backend cpu: .*\n/);
  expect(trained.stderr.match(/^train \d\/3 {2}reward /gm)).toHaveLength(3);
  const summary = JSON.parse(trained.stdout);
  const interval = { mean: expect.any(Number), low: expect.any(Number), high: expect.any(Number) };
  const rows = ['random', 'untrained', 'trained', 'oracle'].map((name) =>
    expect.objectContaining({
      name,
      tasks: 10,
      success: interval,
      sampledSuccess: interval,
      return: interval,
      steps: interval,
    }),
  );
  expect(summary).toMatchObject({
    run: 'runs/whole',
    backend: 'cpu',
    device: expect.any(String),
    seed: 0,
    iterations: 3,
    wallSeconds: expect.any(Number),
    policies: rows,
  });
  expect(JSON.parse(readFileSync(join(cwd, 'runs/whole/summary.json'), 'utf8'))).toEqual(summary);
  expect(lines('whole', 'metrics.jsonl')).toHaveLength(3);
  expect(lines('whole', 'trajectories.jsonl')).toHaveLength(12);

  const evaluated = isogym(cwd, 'eval', 'whole', '--json');
  expect(evaluated.code).toBe(0);
  expect(JSON.parse(evaluated.stdout).policy).toEqual(summary.policies[2]);

  const shown = isogym(cwd, 'show', 'whole', '--best', '1', '--json');
  expect(JSON.parse(shown.stdout)).toMatchObject({ total: 12, episodes: [{ format: 'isogym.trajectory/3' }] });
});

test('without --json a person reads device, progress, the table and the command that does it again', () => {
  const { code, stdout, stderr } = isogym(cwd, ...tabular('read', 'iterations=1'));
  expect(code).toBe(0);
  expect(stderr).toBe('');
  for (const part of [
    /^backend cpu: /,
    /^train 1\/1 {2}/m,
    /^policy +tasks +success/m,
    /^oracle +10 +1\.000 /m,
    /^The same task, trained:$/m,
    /^again +npx isogym train --config toy-lookup-tabular\.yaml name=read /m,
  ]) {
    expect(stdout).toMatch(part);
  }
});

test('Ctrl-C writes a checkpoint, says how to go on and ends with 130; resuming gives what an unbroken run gives', async () => {
  const stopped = await isogymInterrupted(cwd, 'train 3/', [
    ...tabular('stopped', 'iterations=100000', 'seed=5'),
    '--json',
  ]);
  expect(stopped.code).toBe(130);
  const { iterations, ...seen } = JSON.parse(stopped.stdout);
  expect(seen).toEqual({ run: 'runs/stopped', interrupted: true, resume: 'npx isogym train --resume runs/stopped' });
  expect(iterations).toBeGreaterThanOrEqual(3);

  const total = iterations + 2;
  expect(isogym(cwd, 'train', '--resume', 'runs/stopped', `iterations=${total}`, '--json').code).toBe(0);
  expect(isogym(cwd, ...tabular('unbroken', `iterations=${total}`, 'seed=5'), '--json').code).toBe(0);
  for (const log of ['metrics.jsonl', 'trajectories.jsonl'])
    expect(lines('stopped', log)).toEqual(lines('unbroken', log));
});

test('a resumed run keeps its config: an override of anything else is refused', () => {
  const { code, stdout } = isogym(cwd, 'train', '--resume', 'whole', 'iterations=4', 'group.size=3', '--json');
  expect(code).toBe(2);
  expect(JSON.parse(stdout).error).toMatchObject({
    code: 'RESUME_OVERRIDE',
    message: expect.stringContaining('"group.size=3"'),
  });
});
