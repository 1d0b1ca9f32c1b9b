import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeEpisode } from '../../src/cli/episode-text.ts';
import { RunFolder } from '../../src/io/run-folder.ts';
import { TRAJECTORY_FORMAT, type Trajectory } from '../../src/records/trajectory.ts';
import { manifestOf, someConfig } from '../io/made.ts';
import { BIN, isogym } from './isogym.ts';

function episode(id: string, change: Partial<Trajectory> = {}): Trajectory {
  return {
    format: TRAJECTORY_FORMAT,
    id,
    group: '0.0',
    taskId: `task-${id}`,
    iteration: 0,
    rollout: 0,
    seed: 's',
    policy: 'scripted:oracle',
    prompt: 'How many?',
    steps: [
      {
        index: 0,
        action: { text: 'lookup x', calls: [{ id: 'c1', name: 'lookup', arguments: { key: 'x' }, raw: 'x' }] },
        calls: [{ callId: 'c1', tool: 'lookup', states: ['issued', 'running', 'ok'], attempts: 1, observation: '34' }],
        tokens: { segment: 0, start: 0, end: 0 },
        hash: '',
      },
      {
        index: 1,
        action: { text: 'answer 34', calls: [], final: '34' },
        calls: [],
        tokens: { segment: 0, start: 0, end: 0 },
        hash: '',
      },
    ],
    segments: [],
    stop: 'final',
    final: '34',
    hash: '',
    terminated: true,
    truncated: false,
    usable: true,
    verdict: { score: 1, success: true, reasons: ['as expected'] },
    rewards: [-0.05, 0.95],
    return: 0.9,
    ...change,
  };
}

const failed = { verdict: { score: 0, success: false, reasons: [] } };
const EPISODES = [
  episode('a'),
  episode('b', { ...failed, return: -0.1 }),
  episode('c', { ...failed, return: -0.25, stop: 'max-steps', terminated: false, truncated: true, final: null }),
  episode('d', {
    ...failed,
    return: null,
    usable: false,
    stop: 'sandbox-failure',
    terminated: false,
    stopDetail: 'out of memory',
  }),
  episode('e', { return: 0.8 }),
  episode('f', { return: 0.7 }),
];

let cwd: string;
let run: RunFolder;
beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), 'isogym-show-'));
  run = RunFolder.create({ dir: join(cwd, 'runs'), name: 'job', config: someConfig, manifest: manifestOf(someConfig) });
  for (const record of EPISODES) run.append('trajectories', record);
  run.close();
  appendFileSync(run.logPath('trajectories'), '{"torn');
});
afterAll(() => rmSync(cwd, { recursive: true }));

const shown = (...flags: string[]) => {
  const { code, stdout } = isogym(cwd, 'show', 'job', '--json', ...flags);
  expect(code).toBe(0);
  const { matching, total, episodes } = JSON.parse(stdout) as {
    matching: number;
    total: number;
    episodes: Trajectory[];
  };
  expect(total).toBe(EPISODES.length);
  return `${episodes.map(({ id }) => id).join('')} of ${matching}`;
};

test('show picks episodes: the latest, the failed, the truncated, one task, the best and the worst', () => {
  expect(shown()).toBe('bcdef of 6');
  expect(shown('--limit', '2')).toBe('ef of 6');
  expect(shown('--failed')).toBe('bcd of 3');
  expect(shown('--truncated')).toBe('c of 1');
  expect(shown('--task', 'task-e')).toBe('e of 1');
  expect(shown('--episode', 'e')).toBe('e of 1');
  expect(shown('--best', '2')).toBe('ae of 5');
  expect(shown('--worst', '2')).toBe('cb of 5');
  expect(shown('--worst', '2', '--failed')).toBe('cb of 2');
});

test('a task that the run has no episode of is told with the nearest one', () => {
  const { code, stdout } = isogym(cwd, 'show', 'job', '--task', 'taks-e', '--json');
  expect(code).toBe(2);
  expect(JSON.parse(stdout).error).toEqual({
    code: 'UNKNOWN_TASK',
    message: 'expected a task that the run has an episode of, found "taks-e" (did you mean task-e?)',
    hint: 'There are 6 of them, task-a among them.',
  });
});

test('an id that no episode has is told, and no empty selection', () => {
  const { code, stdout } = isogym(cwd, 'show', 'job', '--episode', 'ee', '--json');
  expect(code).toBe(2);
  expect(JSON.parse(stdout).error).toEqual({
    code: 'UNKNOWN_EPISODE',
    message: expect.stringContaining(`expected the id of one of the run's episodes, found "ee"`),
    hint: 'There are 6 of them, a among them.',
  });
});

test('a run is named as everywhere else: by a path that can be typed', () => {
  expect(JSON.parse(isogym(cwd, 'show', 'job', '--json').stdout).run).toBe('runs/job');
});

test('show prints episodes for reading, and tells of a torn line on stderr', () => {
  const { code, stdout, stderr } = isogym(cwd, 'show', 'job', '--limit', '3');
  expect(code).toBe(0);
  expect(stderr.replace(run.path, 'RUN')).toBe(
    'RUN/trajectories.jsonl:7: the last line is torn and left out; the run was stopped while it wrote\n',
  );
  expect(stdout).toMatchInlineSnapshot(`
    "d  task task-d  stop sandbox-failure  score 0  return none  not usable
      prompt    How many?
      step 1    lookup x
                → 34
      step 2    answer 34
      stopped   out of memory

    e  task task-e  stop final  score 1  return 0.8
      prompt    How many?
      step 1    lookup x
                → 34
      step 2    answer 34
      verdict   as expected

    f  task task-f  stop final  score 1  return 0.7
      prompt    How many?
      step 1    lookup x
                → 34
      step 2    answer 34
      verdict   as expected

    3 of 6 matching episodes (6 in all)
    "
  `);
});

test('what a policy or a tool wrote cannot move the cursor or break a line', () => {
  const text = describeEpisode(
    episode('x', {
      prompt: 'a\nb\u001b[2J\u2028c\ud800',
      steps: [],
      verdict: { score: null, success: false, reasons: ['\u009b31m'] },
      return: null,
      usable: false,
    }),
  );
  expect(text).toMatchInlineSnapshot(`
    "x  task task-x  stop final  score none  return none  not usable
      prompt    a\\nb\\u001b[2J\\u2028c�
      verdict   \\u009b31m"
  `);
});

test('a reader that leaves early is no error', () => {
  const command = `"${process.execPath}" "${BIN}" show job --json | true; echo "\${PIPESTATUS[0]}"`;
  const { stdout, stderr } = spawnSync('bash', ['-c', command], { cwd, encoding: 'utf8' });
  expect(stdout).toBe('0\n');
  expect(stderr).not.toContain('EPIPE');
});

test('records of another format are refused', () => {
  const other = RunFolder.create({
    dir: join(cwd, 'runs'),
    name: 'old',
    config: someConfig,
    manifest: manifestOf(someConfig),
  });
  other.append('trajectories', { ...episode('a'), format: 'isogym.trajectory/0' });
  other.close();
  const { code, stdout } = isogym(cwd, 'show', 'old', '--json');
  expect(code).toBe(1);
  expect(JSON.parse(stdout).error).toMatchObject({ code: 'RECORD_BROKEN' });
});

test('a record that lacks what an episode has is refused, not printed', () => {
  const { path } = RunFolder.create({
    dir: join(cwd, 'runs'),
    name: 'partial',
    config: someConfig,
    manifest: manifestOf(someConfig),
  });
  appendFileSync(join(path, 'trajectories.jsonl'), `${JSON.stringify({ format: TRAJECTORY_FORMAT, id: 'a' })}\n`);
  for (const flags of [[], ['--json']]) {
    const { code, stderr } = isogym(cwd, 'show', 'partial', ...flags);
    expect(code).toBe(1);
    expect(stderr).toContain('expected whole episodes');
  }
});
