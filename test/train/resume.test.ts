import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { IterationMetrics } from '../../src/train/metrics.ts';
import {
  expectSameRun,
  freshFolder,
  linesOf,
  resume,
  SMALL_TABULAR,
  SMALL_TRANSFORMER,
  textOf,
  trainShipped,
  trainUntil,
} from './runs.ts';

const BIN = fileURLToPath(new URL('../../bin/isogym.js', import.meta.url));

describe.each([
  ['a tabular run', 'toy-lookup-tabular.yaml', [...SMALL_TABULAR, 'evaluation.every=2'], 'train', 2],
  ['a transformer run', 'toy-lookup.yaml', SMALL_TRANSFORMER, 'train', 1],
  ['a transformer run in its warm start', 'toy-lookup.yaml', SMALL_TRANSFORMER, 'warm-start', 2],
  [
    'a run with a KL anchor',
    'toy-lookup.yaml',
    [...SMALL_TRANSFORMER, 'algorithm.kl=0.1', 'algorithm.epochs=2'],
    'train',
    1,
  ],
] as const)('case 23: %s', (_, config, overrides, phase, at) => {
  test('interrupted and resumed equals one that was not, to the bit', async () => {
    const { path: whole } = await trainShipped(config, overrides);
    const { path, outcome } = await trainUntil(config, overrides, at, phase);
    expect(outcome.interrupted).toBe(true);
    expect(existsSync(join(path, 'summary.json'))).toBe(false);
    expect((await resume(path)).interrupted).toBe(false);
    expectSameRun(path, whole);
  }, 120_000);
});

test('case 23: killed in mid-rollout between two checkpoints, with a torn line, it comes to the same', async () => {
  const overrides = [...SMALL_TABULAR, 'iterations=12', 'checkpoint.every=5'];
  const { path: whole } = await trainShipped('toy-lookup-tabular.yaml', overrides);
  const dir = freshFolder();
  const child = spawn(process.execPath, [
    BIN,
    'train',
    '--config',
    'toy-lookup-tabular.yaml',
    ...overrides,
    `runs.dir=${dir}`,
  ]);
  await killedAfterLine(child, /^train 7\/12/m);
  const path = join(dir, 'toy-lookup-tabular');
  const written = linesOf<{ iteration: number }>(path, 'metrics.jsonl').length;
  expect(written).toBeGreaterThanOrEqual(7);
  expect(written).toBeLessThan(12);
  writeFileSync(join(path, 'trajectories.jsonl'), `${textOf(path, 'trajectories.jsonl')}{"format":"isogym.traj`);
  await resume(path);
  expectSameRun(path, whole);
}, 120_000);

test('Ctrl-C writes a checkpoint, says how to go on, and ends with 130', async () => {
  const dir = freshFolder();
  const args = [
    BIN,
    'train',
    '--config',
    'toy-lookup-tabular.yaml',
    ...SMALL_TABULAR,
    'iterations=500',
    `runs.dir=${dir}`,
  ];
  const child = spawn(process.execPath, args);
  let out = '';
  child.stdout.on('data', (text) => {
    const before = out;
    out += text;
    // Once: a second signal would end it at once.
    if (!/^train 3\//m.test(before) && /^train 3\//m.test(out)) child.kill('SIGINT');
  });
  const code = await new Promise((resolve) => child.on('close', resolve));
  expect(code).toBe(130);
  const [, command] = /(isogym train --resume .*)$/m.exec(out) ?? [];
  expect(command).toContain('toy-lookup-tabular');
  expect(readdirSync(join(dir, 'toy-lookup-tabular', 'checkpoints')).length).toBeGreaterThan(0);
}, 120_000);

test('a checkpoint made under another config is refused', async () => {
  const { path } = await trainShipped('toy-lookup-tabular.yaml', SMALL_TABULAR);
  const config = textOf(path, 'config.yaml');
  writeFileSync(join(path, 'config.yaml'), config.replace('stepPenalty: 0.05', 'stepPenalty: 0.2'));
  await expect(resume(path)).rejects.toMatchObject({ code: 'CHECKPOINT_OTHER_CONFIG', exitCode: 2 });
}, 60_000);

test('a run whose tasks have changed since is refused, as what was evaluated before would be paired with others', async () => {
  const { path } = await trainShipped('toy-lookup-tabular.yaml', SMALL_TABULAR);
  const manifest = textOf(path, 'manifest.json');
  writeFileSync(join(path, 'manifest.json'), manifest.replace(/"tasks": "[^"]*"/, '"tasks": "0"'));
  const written = textOf(path, 'metrics.jsonl');
  await expect(resume(path, ['iterations=9'])).rejects.toMatchObject({ code: 'TASKS_CHANGED', exitCode: 2 });
  expect(textOf(path, 'metrics.jsonl')).toBe(written);
}, 60_000);

test('a run that had ended goes on for longer and is evaluated anew', async () => {
  const overrides = [...SMALL_TABULAR, 'checkpoint.every=2'];
  const { path: whole } = await trainShipped('toy-lookup-tabular.yaml', [...overrides, 'iterations=20']);
  const { path } = await trainShipped('toy-lookup-tabular.yaml', [...overrides, 'iterations=4']);
  await resume(path, ['iterations=20']);
  expectSameRun(path, whole);
  const summary = textOf(path, 'summary.json');
  await expect(resume(path)).rejects.toMatchObject({ code: 'RUN_FINISHED', exitCode: 2 });
  expect(textOf(path, 'summary.json')).toBe(summary);
  await expect(resume(path, ['iterations=4'])).rejects.toMatchObject({ code: 'RESUME_ITERATIONS', exitCode: 2 });
}, 60_000);

test.each([
  [['iterations=0'], /--resume .* iterations=1$/],
  [['iterations=2', 'optimizer.decay=0.5'], /--config .*config.yaml.* iterations=4$/],
])(
  'a run that has ended (%j) says what can be done',
  async (overrides, hint) => {
    const { path } = await trainShipped('toy-lookup-tabular.yaml', [...SMALL_TABULAR, ...overrides]);
    await expect(resume(path)).rejects.toMatchObject({ code: 'RUN_FINISHED', hint: expect.stringMatching(hint) });
  },
  60_000,
);

test('an evaluation of weights from after the checkpoint is made anew, one of weights from before is kept', async () => {
  const overrides = [...SMALL_TABULAR, 'checkpoint.every=3', 'evaluation.every=2'];
  const { path } = await trainShipped('toy-lookup-tabular.yaml', overrides);
  const kept = (n: number) => `evaluations/iteration-${n}.json`;
  const [before, after] = [textOf(path, kept(2)), textOf(path, kept(4))];
  const other = (text: string) => text.replace(/"return":-?[0-9.]+/, '"return":-9');
  // As a kill would have left it after the fourth iteration, of which another backend came to something else.
  for (const file of [2, 4].map(kept)) writeFileSync(join(path, file), other(textOf(path, file)));
  rmSync(join(path, 'summary.json'));
  rmSync(join(path, 'checkpoints', '000004'), { recursive: true });
  await resume(path);
  expect(textOf(path, kept(4))).toBe(after);
  expect(textOf(path, kept(2))).toBe(other(before));
  expect(other(before)).not.toBe(before);
}, 60_000);

test('a KL penalty without a warm start is anchored at the fresh weights', async () => {
  const { path } = await trainShipped('toy-lookup-tabular.yaml', [...SMALL_TABULAR, 'algorithm.kl=0.1']);
  const divergence = linesOf<IterationMetrics>(path, 'metrics.jsonl').map(({ update }) => update.steps[0]?.referenceKl);
  expect(divergence[0]).toBeCloseTo(0, 6);
  expect(divergence.at(-1)).toBeGreaterThan(1e-4);
}, 60_000);

function killedAfterLine(child: ChildProcess, line: RegExp): Promise<void> {
  return new Promise((resolve, reject) => {
    let out = '';
    child.stdout?.on('data', (text) => {
      out += text;
      if (line.test(out)) child.kill('SIGKILL');
    });
    child.on('close', (_, signal) => (signal === 'SIGKILL' ? resolve() : reject(new Error(`ended by itself: ${out}`))));
  });
}
