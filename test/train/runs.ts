/** @module Real runs for tests: a shipped config with overrides, in a folder of its own. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { loadConfig } from '../../src/io/config-file.ts';
import { SILENT } from '../../src/train/reporter.ts';
import { type TrainOutcome, train } from '../../src/train/run.ts';

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

export function freshFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'isogym-runs-'));
  folders.push(folder);
  return folder;
}

/** Trains a shipped config, made smaller by the overrides; gives the run's folder and what came of it. */
export async function trainShipped(
  file: string,
  overrides: readonly string[],
  options: {
    readonly signal?: AbortSignal;
    readonly handleLimit?: number;
    readonly onProgress?: (phase: string, done: number) => void;
    readonly onNote?: (text: string) => void;
  } = {},
): Promise<{ readonly path: string; readonly outcome: TrainOutcome }> {
  const dir = freshFolder();
  const { config, where } = loadConfig({ file, overrides: [...overrides, `runs.dir=${dir}`], cwd: dir });
  const outcome = await train({
    config,
    where,
    command: 'test',
    signal: options.signal ?? new AbortController().signal,
    ...(options.handleLimit === undefined ? {} : { handleLimit: options.handleLimit }),
    reporter: {
      ...SILENT,
      progress: ({ phase, done }) => options.onProgress?.(phase, done),
      note: (text) => options.onNote?.(text),
    },
  });
  return { path: join(dir, config.name), outcome };
}

/** The same, stopped as by Ctrl-C once so much of a phase is done. */
export function trainUntil(
  file: string,
  overrides: readonly string[],
  done: number,
  phase = 'train',
): ReturnType<typeof trainShipped> {
  const stop = new AbortController();
  return trainShipped(file, overrides, {
    signal: stop.signal,
    onProgress: (now, at) => {
      if (now === phase && at === done) stop.abort();
    },
  });
}

/** Everything that must not tell a resumed run from one that was never stopped. */
export function expectSameRun(found: string, wanted: string): void {
  const evaluations = (path: string) => readdirSync(join(path, 'evaluations')).sort();
  expect(evaluations(found)).toEqual(evaluations(wanted));
  for (const file of [
    'trajectories.jsonl',
    'metrics.jsonl',
    'evaluations/untrained.json',
    'evaluations/trained.json',
  ]) {
    expect(textOf(found, file) === textOf(wanted, file), file).toBe(true);
  }
  const last = (path: string) =>
    join(path, 'checkpoints', readdirSync(join(path, 'checkpoints')).sort().at(-1) as string);
  for (const file of ['model.safetensors', 'optimizer.safetensors', 'state.json']) {
    expect(readFileSync(join(last(found), file)).equals(readFileSync(join(last(wanted), file))), file).toBe(true);
  }
}

/** Goes on with a run. */
export async function resume(
  path: string,
  overrides: readonly string[] = [],
  onProgress: (phase: string) => void = () => undefined,
): Promise<TrainOutcome> {
  const { config, where } = loadConfig({ file: join(path, 'config.yaml'), overrides, cwd: path });
  return train({
    config,
    where,
    command: 'test',
    signal: new AbortController().signal,
    reporter: { ...SILENT, progress: ({ phase }) => onProgress(phase) },
    resume: path,
  });
}

export function textOf(path: string, file: string): string {
  return readFileSync(join(path, file), 'utf8');
}

export function linesOf<T>(path: string, file: string): readonly T[] {
  return textOf(path, file)
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as T);
}

/** A transformer run of a few seconds: the whole flow, warm start included. */
export const SMALL_TRANSFORMER = [
  'iterations=3',
  'tasks.train=100',
  'tasks.heldOut=20',
  'evaluation.tasks=20',
  'policy.width=16',
  'policy.heads=2',
  'policy.kvHeads=1',
  'policy.headWidth=8',
  'policy.hidden=24',
  'warmStart.steps=4',
  'warmStart.episodes=8',
  'warmStart.demonstrations=40',
  'batch.groups=3',
  'group.size=3',
  'checkpoint.every=2',
];

export const SMALL_TABULAR = [
  'iterations=4',
  'tasks.heldOut=30',
  'evaluation.tasks=30',
  'batch.groups=4',
  'checkpoint.every=3',
];
