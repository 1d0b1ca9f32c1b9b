import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { loadConfig } from '../../src/io/config-file.ts';
import { linksOf } from '../../src/records/hash-chain.ts';
import type { Trajectory } from '../../src/records/trajectory.ts';
import { type ReplayOptions, replayRun } from '../../src/train/replay-run.ts';
import { SILENT } from '../../src/train/reporter.ts';
import { train } from '../../src/train/run.ts';
import { isogym } from '../cli/isogym.ts';
import { freshFolder, linesOf, SMALL_TABULAR, SMALL_TRANSFORMER, textOf, trainShipped } from './runs.ts';

const replayed = (run: string, options: Partial<ReplayOptions> = {}) =>
  replayRun({
    run,
    read: (record) => record as Trajectory,
    isMeant: () => true,
    signal: new AbortController().signal,
    reporter: SILENT,
    ...options,
  });

let run: string;
let written: string;
beforeAll(async () => {
  run = (await trainShipped('toy-lookup-tabular.yaml', [...SMALL_TABULAR, 'iterations=1', 'workers=2'])).path;
  written = textOf(run, 'trajectories.jsonl');
});
beforeEach(() => writeFileSync(join(run, 'trajectories.jsonl'), written));

/** One line changed, and the others left as they were. */
function tamper(line: number, change: (line: string) => string): string {
  const lines = written.split('\n');
  const before = lines[line - 1] as string;
  lines[line - 1] = change(before);
  expect(lines[line - 1]).not.toBe(before);
  writeFileSync(join(run, 'trajectories.jsonl'), lines.join('\n'));
  return (JSON.parse(before) as Trajectory).id;
}

test('a run of a tabular policy comes to the same again, link by link', async () => {
  const episodes = linesOf<Trajectory>(run, 'trajectories.jsonl');
  const report = await replayed(run);
  expect(report).toMatchObject({ replayed: episodes.length, total: episodes.length, differences: [], skipped: [] });
  expect(report.steps).toBe(episodes.reduce((sum, { steps }) => sum + steps.length, 0));
});

test('so does one of a transformer, its prompt and observations encoded anew', async () => {
  const { path } = await trainShipped('toy-lookup.yaml', [...SMALL_TRANSFORMER, 'iterations=1']);
  expect(await replayed(path)).toMatchObject({ replayed: 9, differences: [] });
});

test('a changed observation is named with its step, what was expected and what was found', async () => {
  const at = linesOf<Trajectory>(run, 'trajectories.jsonl').findIndex(({ steps }) => steps.length > 1) + 1;
  const id = tamper(at, (line) => line.replace(/"observation":"[^"]*"/, '"observation":"999"'));
  const report = await replayed(run);
  expect(report.differences).toHaveLength(1);
  const [difference] = report.differences;
  // The link of that step is still that of what was observed: it is the record that does not fit it.
  expect(difference).toMatchObject({ episode: id, line: at, step: 0, what: 'calls.0.observation', expected: '"999"' });
  expect(difference!.changed).toBe(true);
  expect(JSON.parse(difference!.found)).not.toBe('999');
});

test('whatever is changed since it was written is found, each in its line and step', async () => {
  const changes: readonly (readonly [step: number | null, change: (line: string) => string])[] = [
    [0, (line) => line.replace(/"ids":\[(\d+),\d+/, '"ids":[$1,2')],
    [0, (line) => line.replace(/"logprobs":\[null,-[^,\]]*/, '"logprobs":[null,-0.5')],
    [null, (line) => line.replace(/"stop":"[a-z-]*"/, '"stop":"malformed-limit"')],
    [null, (line) => line.replace(/"prompt":"/, '"prompt":"Now, ')],
    [0, (line) => line.replace(/"hash":"[0-9a-f]{8}/, '"hash":"00000000')],
    [null, (line) => line.replace(/(.*"hash":")[0-9a-f]{8}/, '$100000000')],
    [null, (line) => line.replace(/"steps":\[\{/, '"steps":[null,{')],
  ];
  const lines = written.split('\n');
  const changed = lines.map((line, i) => changes[i]?.[1](line) ?? line);
  for (const i of changes.keys()) expect(changed[i]).not.toBe(lines[i]);
  writeFileSync(join(run, 'trajectories.jsonl'), changed.join('\n'));
  const { differences } = await replayed(run);
  expect(differences.map(({ line, step, changed }) => ({ line, step, changed }))).toEqual(
    changes.map(([step], i) => ({ line: i + 1, step, changed: true })),
  );
});

test('what is not executed again is held against its own chain, and a task that is none of the run’s is told', async () => {
  const odd: readonly (readonly [change: (line: string) => string, what: string])[] = [
    [(line) => line.replace(/"taskId":"[^"]*"/, '"taskId":"nowhere"'), 'hash'],
    [(line) => line.replace(/"stop":"[a-z-]*"/, '"stop":"sandbox-failure"'), 'hash'],
    [(line) => line.replace(/"seed":/, '"forkedFrom":{"episode":"0.0.0","step":0},"seed":'), 'hash'],
  ];
  const lines = written.split('\n');
  writeFileSync(join(run, 'trajectories.jsonl'), lines.map((line, i) => odd[i]?.[0](line) ?? line).join('\n'));
  const { differences, skipped, replayed: n } = await replayed(run);
  expect(differences.map(({ line, what, changed }) => ({ line, what, changed }))).toEqual(
    odd.map(([, what], i) => ({ line: i + 1, what, changed: true })),
  );
  expect(skipped.map(({ line }) => line)).toEqual([2, 3]);
  expect(n).toBe(32 - 3);
  // Nor does one pass whose links were worked out anew for it.
  const forged = JSON.parse(lines[0] as string) as Trajectory;
  const other = { ...forged, taskId: 'nowhere' };
  const links = linksOf(other);
  const steps = other.steps.map((step, i) => ({ ...step, hash: links[i] as string }));
  writeFileSync(
    join(run, 'trajectories.jsonl'),
    [JSON.stringify({ ...other, steps, hash: links.at(-1) }), ...lines.slice(1)].join('\n'),
  );
  expect((await replayed(run)).differences).toMatchObject([{ line: 1, what: 'taskId', changed: false }]);
});

test('a record that nests too deep is told with its line, by the command as well', () => {
  const deep = `{"key":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
  tamper(2, (line) => line.replace(/"arguments":\{[^}]*\}/, `"arguments":${deep}`));
  for (const command of ['replay', 'show']) {
    const { code, stderr } = isogym(run, command, run);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /trajectories.jsonl:2: expected one JSON value, found JSON that nests more than 1000 levels/,
    );
    expect(stderr).toContain('hint: ');
    expect(stderr).not.toContain('call stack');
  }
});

test.each<[string, (file: string) => void, string]>([
  ['missing', (file) => rmSync(file), 'no such file'],
  ['empty', (file) => writeFileSync(file, ''), 'none'],
  ['torn in its first line', (file) => writeFileSync(file, written.slice(0, 300)), 'none'],
])('where the file of episodes is %s nothing is said to be the same', async (_, damage, found) => {
  damage(join(run, 'trajectories.jsonl'));
  await expect(replayed(run)).rejects.toMatchObject({
    code: 'NO_EPISODES',
    exitCode: 2,
    message: expect.stringMatching(`trajectories.jsonl: expected the episodes of the run, found ${found}$`),
    hint: expect.stringContaining('isogym train --resume'),
  });
});

test('the filters and the limit choose, and the report says of how many', async () => {
  const meant = { isMeant: ({ rollout }: Trajectory) => rollout === 0, limit: 2 };
  expect(await replayed(run, meant)).toMatchObject({ replayed: 2, matching: 4, total: 32 });
});

test.each<[string, RegExp, (manifest: string) => string]>([
  ['V8', /was under V8 1\.2/, (text) => text.replace(/"v8": "[^"]*"/, '"v8": "1.2"')],
  ['platform', /was on plan9-vax/, (text) => text.replace(/"platform": "[^"]*"/, '"platform": "plan9-vax"')],
  ['code', /environment's code has changed/, (text) => text.replace(/"code": "[^"]*"/, '"code": "0"')],
  ['declaration', /environment declares/, (text) => text.replace(/"declaration": "[^"]*"/, '"declaration": "0"')],
  ['task set', /its tasks are others/, (text) => text.replace(/"tasks": "[^"]*"/, '"tasks": "0"')],
  ['isogym', /under isogym 0\.0/, (text) => text.replace(/"isogym": "[^"]*"/, '"isogym": "0.0"')],
  ['config', /config\.yaml has changed/, (text) => text.replace(/"config": "[^"]*"/, '"config": "0"')],
])('a run of another %s is refused', async (_, message, change) => {
  const file = join(run, 'manifest.json');
  const manifest = readFileSync(file, 'utf8');
  writeFileSync(file, change(manifest));
  try {
    await expect(replayed(run)).rejects.toMatchObject({
      code: 'REPLAY_ELSEWHERE',
      message: expect.stringMatching(message),
    });
  } finally {
    writeFileSync(file, manifest);
  }
});

test('an environment that is not the same every time is found out, at the step where it differs', async () => {
  const dir = freshFolder();
  const file = join(dir, 'drifting.yaml');
  const fixture = fileURLToPath(new URL('../fixtures/drifting/index.ts', import.meta.url));
  writeFileSync(
    file,
    stringify({
      iterations: 1,
      // All in one realm: what it keeps of the evaluations before is there when it is trained on.
      workers: 1,
      environment: { module: fixture },
      verifier: { module: 'exact-answer' },
      policy: { kind: 'tabular' },
      tasks: { train: 4, heldOut: 2 },
      evaluation: { tasks: 2 },
      batch: { groups: 1 },
      group: { size: 2 },
      optimizer: { learningRate: 0.01 },
      runs: { dir },
    }),
  );
  const { config } = loadConfig({ file, overrides: [], cwd: dir });
  await train({ config });
  const { differences } = await replayed(join(dir, config.name));
  expect(differences).toHaveLength(2);
  for (const difference of differences) {
    expect(difference).toMatchObject({ step: 1, what: 'calls.0.observation', changed: false });
    expect(difference.expected).not.toBe(difference.found);
    expect(difference.hash.expected).not.toBe(difference.hash.found);
  }
});

test('the command prints the differences and ends with 1, or with 0 where there is none', () => {
  const same = isogym(run, 'replay', run, '--limit', '3');
  expect(same.code).toBe(0);
  expect(same.stdout).toMatch(/3 of 32 matching episodes \(32 in all\), \d+ steps: all the same/);
  const id = tamper(2, (line) => line.replace(/"observation":"[^"]*"/, '"observation":"999"'));
  const other = isogym(run, 'replay', run, '--json');
  expect(other.code).toBe(1);
  expect(JSON.parse(other.stdout)).toMatchObject({ replayed: 32, differences: [{ episode: id, line: 2 }] });
  const told = isogym(run, 'replay', run, '--episode', id);
  expect(told.stdout).toContain(`${id} (line 2), step 1: calls.0.observation\n  expected  "999"\n  found     "`);
  expect(told.stdout).toContain('1 of 1 matching episodes (32 in all)');
});

test('an episode that is nowhere is an error: nothing compared is not all the same', () => {
  const { code, stdout } = isogym(run, 'replay', run, '--episode', 'nowhere', '--json');
  expect(code).toBe(2);
  expect(JSON.parse(stdout).error.code).toBe('UNKNOWN_EPISODE');
});
