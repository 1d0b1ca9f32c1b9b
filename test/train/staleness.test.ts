import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Trajectory } from '../../src/records/trajectory.ts';
import type { IterationMetrics } from '../../src/train/metrics.ts';
import { configProblems } from './configs.ts';
import {
  expectSameRun,
  freshFolder,
  linesOf,
  resume,
  SMALL_TRANSFORMER,
  textOf,
  trainShipped,
  trainUntil,
} from './runs.ts';

const BIN = fileURLToPath(new URL('../../bin/isogym.js', import.meta.url));
const OVERRIDES = [...SMALL_TRANSFORMER, 'rollouts.staleness=1', 'optimizer.decay=0'];

function last(path: string): string {
  return join(path, 'checkpoints', readdirSync(join(path, 'checkpoints')).sort().at(-1) ?? '');
}

function expectSameActing(found: string, wanted: string): void {
  const [a, b] = [found, wanted].map((path) => readFileSync(join(last(path), 'acting.safetensors')));
  expect(a?.equals(b as Buffer)).toBe(true);
}

/** Processes of learners that this one has started, or `parent` has. */
function learners(parent = process.pid): readonly number[] {
  const lines = execFileSync('ps', ['-eo', 'pid=,ppid=,args='], { encoding: 'utf8' }).split('\n');
  return lines
    .map((line) => line.trim().split(/\s+/))
    .filter(([, ppid, ...args]) => Number(ppid) === parent && args.join(' ').includes('remote-steps/main'))
    .map(([pid]) => Number(pid));
}

describe('rollouts that run beside the update before them', () => {
  test('are those of weights one update old, and are learnt from with their true ratios', async () => {
    const notes: string[] = [];
    const { path } = await trainShipped('toy-lookup.yaml', [...OVERRIDES, 'iterations=4', 'algorithm.epochs=2'], {
      onNote: (text) => notes.push(text),
    });
    expect(notes).toContainEqual(expect.stringMatching(/^rollouts.staleness 1: the learner works in a process/));
    const metrics = linesOf<IterationMetrics>(path, 'metrics.jsonl').filter(({ phase }) => phase === 'train');
    expect(metrics.map(({ staleness }) => staleness)).toEqual([0, 2, 2, 2]);
    const deviations = metrics.map(({ update }) => update.steps[0]?.drift?.maxRatioDeviation ?? Number.NaN);
    expect(deviations[0]).toBeLessThan(2e-5);
    for (const deviation of deviations.slice(1)) expect(deviation).toBeGreaterThan(1e-4);
    // After four steps of warm start, two an iteration.
    const versions = linesOf<Trajectory>(path, 'trajectories.jsonl').map(({ iteration, segments }) => [
      iteration,
      ...new Set(segments.flatMap(({ policyVersion }) => policyVersion.filter((version) => version !== null))),
    ]);
    for (const [iteration = 0, ...of] of versions) expect(of).toEqual([4 + 2 * Math.max(0, iteration - 1)]);
    const timings = linesOf<{ overlapSeconds?: number }>(path, 'timings.jsonl');
    expect(timings.map(({ overlapSeconds = 0 }) => overlapSeconds > 0)).toEqual([true, true, true, false]);
    expect(learners()).toEqual([]);
  }, 120_000);

  test('begin with the same iteration as a run without', async () => {
    const { path: stale } = await trainShipped('toy-lookup.yaml', [...OVERRIDES, 'iterations=1', 'algorithm.kl=0.1']);
    const same = [...SMALL_TRANSFORMER, 'iterations=1', 'optimizer.decay=0', 'algorithm.kl=0.1'];
    const { path: fresh } = await trainShipped('toy-lookup.yaml', same);
    expect(textOf(stale, 'trajectories.jsonl') === textOf(fresh, 'trajectories.jsonl')).toBe(true);
    expect(textOf(stale, 'metrics.jsonl')).toBe(textOf(fresh, 'metrics.jsonl'));
    // The learner's own process comes to the same bits: only the config's hash tells the checkpoints apart.
    for (const file of ['model.safetensors', 'optimizer.safetensors', 'reference.safetensors']) {
      expect(readFileSync(join(last(stale), file)).equals(readFileSync(join(last(fresh), file))), file).toBe(true);
    }
  }, 120_000);

  test('case 23: come to the same bits with other workers, interrupted and resumed, killed and resumed, and gone on with for longer', async () => {
    const overrides = [...OVERRIDES, 'iterations=5', 'checkpoint.keep=9'];
    const { path: whole } = await trainShipped('toy-lookup.yaml', [...overrides, 'workers=1']);

    const { path, outcome } = await trainUntil('toy-lookup.yaml', [...overrides, 'workers=2'], 2);
    expect(outcome).toMatchObject({ interrupted: true });
    await resume(path);
    expectSameRun(path, whole);
    expectSameActing(path, whole);

    // As a kill after the third iteration would have left it.
    for (const gone of ['000004', '000005']) rmSync(join(path, 'checkpoints', gone), { recursive: true, force: true });
    rmSync(join(path, 'summary.json'));
    rmSync(join(path, 'evaluations', 'trained.json'));
    await resume(path);
    expectSameRun(path, whole);

    const { path: shorter } = await trainShipped('toy-lookup.yaml', [...overrides, 'iterations=3']);
    await resume(shorter, ['iterations=5']);
    expectSameRun(shorter, whole);
    expectSameActing(shorter, whole);
  }, 240_000);

  test('are carried over with a budget as well', async () => {
    const overrides = [...OVERRIDES, 'iterations=5', 'rollouts.budget=7', 'rollouts.live=6'];
    const { path: whole } = await trainShipped('toy-lookup.yaml', overrides);
    const metrics = linesOf<IterationMetrics>(whole, 'metrics.jsonl').filter(({ phase }) => phase === 'train');
    expect(Math.max(...metrics.map(({ staleness }) => staleness))).toBeGreaterThan(1);
    const { path } = await trainUntil('toy-lookup.yaml', overrides, 3);
    await resume(path);
    expectSameRun(path, whole);
    expect(textOf(last(path), 'carried.json')).toBe(textOf(last(whole), 'carried.json'));
  }, 120_000);
});

test('a run that cannot begin ends: no process of a learner holds it', () => {
  const args = [BIN, 'train', '--config', 'toy-lookup.yaml', ...OVERRIDES, 'runs.dir=/dev/null/x', '--json'];
  const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 100_000 });
  expect(status).not.toBe(null);
  expect(JSON.parse(stdout).error.code).toBe('RUN_FOLDER');
}, 120_000);

test('a warm start happens here: its process begins with reinforcement', async () => {
  const seen: (readonly [string, number])[] = [];
  await trainShipped('toy-lookup.yaml', [...OVERRIDES, 'iterations=2'], {
    onProgress: (phase) => void seen.push([phase, learners().length]),
  });
  expect(seen.filter(([phase]) => phase === 'warm-start').map(([, n]) => n)).toEqual([0, 0, 0, 0]);
  expect(seen.filter(([phase]) => phase === 'train').map(([, n]) => n)).toEqual([1, 1]);
}, 120_000);

describe('weights that act, in a checkpoint', () => {
  let run: string;
  beforeAll(async () => {
    run = (await trainUntil('toy-lookup.yaml', [...OVERRIDES, 'iterations=4'], 2)).path;
  }, 120_000);

  test.each<[string, RegExp, (checkpoint: string) => void]>([
    ['are missing', /acting.safetensors is missing/, (at) => rmSync(join(at, 'acting.safetensors'))],
    [
      'are no numbers',
      /acting.safetensors: expected finite numbers, found NaN in /,
      (at) => {
        const bytes = readFileSync(join(at, 'acting.safetensors'));
        bytes.writeFloatLE(Number.NaN, bytes.length - 4);
        writeFileSync(join(at, 'acting.safetensors'), bytes);
      },
    ],
    [
      'have no version',
      /state.json lacks the version of acting.safetensors/,
      (at) => state(at, ({ actingVersion: _, ...rest }) => rest),
    ],
    [
      'are newer than what learns',
      /expected an actingVersion of at most \d+, found 999/,
      (at) => state(at, (was) => ({ ...was, actingVersion: 999 })),
    ],
  ])('%s: told, and not gone on with', async (_, message, damage) => {
    const path = join(freshFolder(), 'run');
    cpSync(run, path, { recursive: true });
    damage(last(path));
    await expect(resume(path)).rejects.toMatchObject({
      code: 'CHECKPOINT_BROKEN',
      message: expect.stringMatching(message),
    });
  });

  function state(checkpoint: string, change: (was: Record<string, unknown>) => object): void {
    const file = join(checkpoint, 'state.json');
    writeFileSync(file, JSON.stringify(change(JSON.parse(readFileSync(file, 'utf8')))));
  }
});

describe('a learner whose process dies', () => {
  test('ends the run, which goes on from its checkpoint to the same bits', async () => {
    const overrides = [...OVERRIDES, 'iterations=4', 'checkpoint.every=2'];
    const { path: whole } = await trainShipped('toy-lookup.yaml', overrides);
    const notes: string[] = [];
    const dir = freshFolder();
    const failed = trainShipped('toy-lookup.yaml', overrides, {
      onNote: (text) => notes.push(text),
      onProgress: (phase, done) => {
        if (phase === 'train' && done === 3) for (const pid of learners()) process.kill(pid, 'SIGKILL');
      },
    }).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(await failed).toMatchObject({
      code: 'LEARNER_LOST',
      message: 'expected the process of the learner to go on, found that its process ended with SIGKILL',
      hint: expect.stringContaining('isogym train --resume'),
    });
    const path = notes.map((note) => /^run (.*)$/.exec(note)?.[1]).find((found) => found !== undefined) ?? '';
    expect(notes.at(-1)).toMatch(
      /Its batch is kept in .*failed-batch.jsonl, the weights before it could not be: expected/,
    );
    cpSync(path, join(dir, 'killed'), { recursive: true });
    await resume(join(dir, 'killed'));
    for (const file of ['trajectories.jsonl', 'metrics.jsonl']) {
      expect(textOf(join(dir, 'killed'), file) === textOf(whole, file), file).toBe(true);
    }
    expectSameActing(join(dir, 'killed'), whole);
  }, 120_000);

  test.each([
    // Right before its process is started, and while it works.
    /^warm-start 4\/4/m,
    /^train 3\//m,
  ])(
    'is not what Ctrl-C does, which reaches all processes of a terminal: a checkpoint is written (%s)',
    async (when) => {
      const dir = freshFolder();
      const args = [BIN, 'train', '--config', 'toy-lookup.yaml', ...OVERRIDES, 'iterations=500', `runs.dir=${dir}`];
      const child = spawn(process.execPath, args, { detached: true });
      let out = '';
      for (const stream of [child.stdout, child.stderr]) {
        stream.on('data', (text) => {
          const before = out;
          out += text;
          if (!when.test(before) && when.test(out)) process.kill(-(child.pid as number), 'SIGINT');
        });
      }
      const code = await new Promise((resolve) => child.on('close', resolve));
      expect(out).toMatch(/Interrupted; a checkpoint is written/);
      expect(code).toBe(130);
    },
    120_000,
  );

  test('goes when the run that started it is killed', async () => {
    const dir = freshFolder();
    const args = [BIN, 'train', '--config', 'toy-lookup.yaml', ...OVERRIDES, 'iterations=500', `runs.dir=${dir}`];
    const child = spawn(process.execPath, args);
    let left: readonly number[] = [];
    child.stdout.on('data', (text) => {
      if (!/^train /m.test(String(text)) || left.length > 0) return;
      left = learners(child.pid);
      child.kill('SIGKILL');
    });
    await new Promise((resolve) => child.on('close', resolve));
    expect(left).toHaveLength(1);
    await expect.poll(() => alive(left[0] as number), { timeout: 30_000 }).toBe(false);
  }, 120_000);
});

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

test('staleness is refused where nothing makes up for it', () => {
  const problems = (algorithm: object, staleness: number) => configProblems({ rollouts: { staleness }, algorithm });
  expect(problems({}, 1)).toBe(undefined);
  expect(problems({ estimator: 'reinforce', scale: 'none' }, 0)).toBe(undefined);
  expect(problems({ estimator: 'reinforce', scale: 'none' }, 1)).toEqual([
    ['rollouts.staleness', expect.stringContaining('expected it with estimator grpo alone')],
  ]);
  expect(problems({}, 2)).toEqual([['rollouts.staleness', expect.any(String)]]);
});
