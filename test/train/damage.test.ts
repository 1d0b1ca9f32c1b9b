import {
  appendFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { loadConfig } from '../../src/io/config-file.ts';
import { evaluateRun } from '../../src/train/evaluate-run.ts';
import { SILENT } from '../../src/train/reporter.ts';
import { train } from '../../src/train/run.ts';
import { freshFolder, resume, SMALL_TABULAR, SMALL_TRANSFORMER, textOf, trainShipped } from './runs.ts';

let sound: string;
beforeAll(async () => {
  sound = (await trainShipped('toy-lookup-tabular.yaml', [...SMALL_TABULAR, 'iterations=4', 'workers=1'])).path;
}, 120_000);

function damaged(damage: (run: string) => void): string {
  const run = join(freshFolder(), 'run');
  cpSync(sound, run, { recursive: true });
  damage(run);
  return run;
}

const latest = (run: string, file: string) => join(run, 'checkpoints/000004', file);
const replaceIn = (file: string, from: string, to: string) => {
  const text = readFileSync(file, 'latin1');
  expect(text).toContain(from);
  writeFileSync(file, text.replaceAll(from, to), 'latin1');
};
/** Overwrites the last four bytes: the last number. */
const spoil = (file: string) => {
  const bytes = readFileSync(file);
  bytes.writeFloatLE(Number.NaN, bytes.length - 4);
  writeFileSync(file, bytes);
};

const DEEP = '['.repeat(100_000) + ']'.repeat(100_000);

test.each<[string, string, RegExp, (run: string) => void]>([
  [
    'a manifest of another format',
    'RUN_BROKEN',
    /of format isogym.run\/4, found "x"/,
    (r) => writeFileSync(join(r, 'manifest.json'), '{"format":"x"}'),
  ],
  [
    'a manifest that lacks keys',
    'RUN_BROKEN',
    /seed: /,
    (r) => writeFileSync(join(r, 'manifest.json'), '{"format":"isogym.run/4"}'),
  ],
  [
    'a manifest that nests too deep',
    'RUN_BROKEN',
    /manifest.json: .* nests more than 1000 levels deep/,
    (r) => writeFileSync(join(r, 'manifest.json'), `{"format":${DEEP}}`),
  ],
  ['an empty manifest', 'RUN_BROKEN', /manifest.json/, (r) => writeFileSync(join(r, 'manifest.json'), '')],
  ['no config', 'CONFIG_NOT_FOUND', /config.yaml/, (r) => rmSync(join(r, 'config.yaml'))],
  ['no checkpoint', 'NO_CHECKPOINT', /run/, (r) => rmSync(join(r, 'checkpoints'), { recursive: true })],
  [
    'a checkpoint without a file',
    'CHECKPOINT_BROKEN',
    /000004: .*state.json is missing/,
    (r) => rmSync(latest(r, 'state.json')),
  ],
  [
    'a torn checkpoint',
    'CHECKPOINT_BROKEN',
    /000004: .*sound safetensors/,
    (r) => truncateSync(latest(r, 'model.safetensors'), 50),
  ],
  [
    'a state that is none',
    'CHECKPOINT_BROKEN',
    /000004: .*state.json phase/,
    (r) => replaceIn(latest(r, 'state.json'), '"train"', '"traim"'),
  ],
  [
    'weights under other names',
    'CHECKPOINT_BROKEN',
    /000004: .*expected a table/,
    (r) => replaceIn(latest(r, 'model.safetensors'), '"table"', '"tabel"'),
  ],
  [
    'an optimizer of other weights',
    'CHECKPOINT_BROKEN',
    /000004: .*remember table/,
    (r) => replaceIn(latest(r, 'optimizer.safetensors'), '"m.table"', '"m.tabel"'),
  ],
  [
    'weights that are no numbers',
    'CHECKPOINT_BROKEN',
    /000004: .*found NaN in table/,
    (r) => spoil(latest(r, 'model.safetensors')),
  ],
  [
    'a record that is none',
    'RECORD_BROKEN',
    /trajectories.jsonl:\d+: expected a record, found null/,
    (r) => appendFileSync(join(r, 'trajectories.jsonl'), 'null\n'),
  ],
  [
    'a record that nests too deep',
    'RECORD_BROKEN',
    /trajectories.jsonl:\d+: .* nests more than 1000 levels deep/,
    (r) => appendFileSync(join(r, 'trajectories.jsonl'), `{"steps":${DEEP}}\n`),
  ],
  [
    'carried episodes that nest too deep',
    'CHECKPOINT_BROKEN',
    /000004: .* nests more than 1000 levels deep/,
    (r) => writeFileSync(latest(r, 'carried.json'), `{"drawn":0,"suspended":[],"ended":[${DEEP}]}`),
  ],
  [
    'a folder where a log should be',
    'RECORD_BROKEN',
    /metrics.jsonl/,
    (r) => {
      rmSync(join(r, 'metrics.jsonl'));
      mkdirSync(join(r, 'metrics.jsonl'));
    },
  ],
  [
    'an evaluation that is none',
    'RECORD_BROKEN',
    /random.json/,
    (r) => writeFileSync(join(r, 'evaluations/random.json'), '{}'),
  ],
  ...(['', 'null\n', '{}\n'] as const).map((content): [string, string, RegExp, (run: string) => void] => [
    `episodes of an evaluation that are ${JSON.stringify(content)}`,
    'RECORD_BROKEN',
    /untrained.greedy.jsonl/,
    (r) => writeFileSync(join(r, 'evaluations/untrained.greedy.jsonl'), content),
  ]),
  [
    'no evaluation of weights that are gone',
    'RECORD_MISSING',
    /untrained.json/,
    (r) => rmSync(join(r, 'evaluations'), { recursive: true }),
  ],
])('a run with %s is not gone on with: %s, at its path', async (_, code, message, damage) => {
  const run = damaged(damage);
  await expect(resume(run, ['iterations=5', 'workers=1'])).rejects.toMatchObject({
    code,
    message: expect.stringMatching(message),
    hint: expect.any(String),
  });
});

test('what can be made again is made again', async () => {
  const run = damaged((r) => {
    for (const file of ['random.json', 'oracle.json', 'trained.json', 'trained.greedy.jsonl']) {
      rmSync(join(r, 'evaluations', file));
    }
    rmSync(join(r, 'summary.json'));
    mkdirSync(join(r, 'checkpoints/000004.tmp'));
    writeFileSync(join(r, 'checkpoints/notes'), 'x');
    writeFileSync(join(r, 'checkpoints/000099'), 'a file, not a checkpoint');
  });
  expect((await resume(run, ['workers=1'])).interrupted).toBe(false);
  for (const file of ['random.sampled', 'trained.greedy', 'oracle.sampled']) {
    expect(textOf(run, `evaluations/${file}.jsonl`)).toBe(textOf(sound, `evaluations/${file}.jsonl`));
  }
});

test('a run whose logs have lost records goes on and says so', async () => {
  const noticesOf = async (damage: (run: string) => void) => {
    const run = damaged(damage);
    const overrides = ['iterations=5', 'workers=1'];
    const { config } = loadConfig({ file: join(run, 'config.yaml'), overrides, cwd: run });
    const notes: string[] = [];
    await train({ config, resume: run, reporter: { ...SILENT, note: (text) => notes.push(text) } });
    return notes.filter((note) => note.includes('lacks records')).map((note) => /(\w+)\.jsonl/.exec(note)?.[1]);
  };
  expect(await noticesOf(() => undefined)).toEqual([]);
  expect(await noticesOf((r) => rmSync(join(r, 'trajectories.jsonl')))).toEqual(['trajectories']);
  const half = (r: string) => truncateSync(join(r, 'metrics.jsonl'), 900);
  expect(await noticesOf(half)).toEqual(['metrics']);
});

test('an evaluation says what is not as it was when the run was trained', async () => {
  const notesOf = async (run: string) => {
    const notes: string[] = [];
    const reporter = { ...SILENT, note: (text: string) => notes.push(text) };
    await evaluateRun({ run, signal: new AbortController().signal, reporter });
    return notes.filter((note) => note.startsWith('not what the run was trained with'));
  };
  expect(await notesOf(damaged(() => undefined))).toEqual([]);
  const other = damaged((run) => {
    const file = join(run, 'manifest.json');
    writeFileSync(file, readFileSync(file, 'utf8').replace(/"tasks": "[^"]*"/, '"tasks": "0"'));
  });
  expect(await notesOf(other)).toEqual([expect.stringMatching(/its tasks are others$/)]);
});

test('a run is resumed by one process at a time, and evaluated meanwhile', async () => {
  const run = damaged(() => undefined);
  const first = resume(run, ['iterations=8', 'workers=1']);
  await expect(resume(run, ['iterations=8', 'workers=1'])).rejects.toMatchObject({ code: 'RUN_IN_USE' });
  await evaluateRun({ run, signal: new AbortController().signal, reporter: SILENT });
  expect((await first).interrupted).toBe(false);
});

test('weights that diverge end the run, and the last sound checkpoint is left as it was', async () => {
  const dir = freshFolder();
  const overrides = [...SMALL_TABULAR, 'workers=1', 'iterations=1', `runs.dir=${dir}`, 'name=spoilt'];
  const { config } = loadConfig({ file: 'toy-lookup-tabular.yaml', overrides, cwd: dir });
  // No config file can ask for it: beyond what 32 bits hold.
  const spoilt = train({ config: { ...config, optimizer: { ...config.optimizer, learningRate: 1e308 } } });
  await expect(spoilt).rejects.toMatchObject({
    code: 'WEIGHTS_DIVERGED',
    message: expect.stringMatching(/in (m\.|v\.)?table/),
  });
  expect(readdirSync(join(dir, 'spoilt/checkpoints'))).toEqual(['000000']);
});

test('a run whose folder is moved away while it goes on says so, and makes no other in its place', async () => {
  const run = damaged(() => undefined);
  const config = readFileSync(join(run, 'config.yaml'), 'utf8').replace(/^iterations: .*/m, 'iterations: 6');
  writeFileSync(join(run, 'config.yaml'), config);
  const gone = resume(run, ['workers=1', 'checkpoint.every=1'], (phase) => {
    if (phase === 'train') rmSync(run, { recursive: true, force: true });
  });
  await expect(gone).rejects.toMatchObject({ code: 'RUN_GONE' });
  expect(() => readFileSync(join(run, 'config.yaml'))).toThrow('ENOENT');
});

test('a mixture is refused before anything is made, with every script that the environment has not', async () => {
  const wrong = trainShipped('toy-lookup.yaml', [
    'warmStart.mixture={oracel: 0.5, immediat: 0.5}',
    'workers=1',
    `name=x`,
  ]);
  await expect(wrong).rejects.toMatchObject({
    code: 'UNKNOWN_SCRIPT',
    message: [
      'argument 1 warmStart.mixture.oracel: expected one of oracle, skip, immediate, survey, found oracel (did you mean oracle?)',
      'argument 1 warmStart.mixture.immediat: expected one of oracle, skip, immediate, survey, found immediat (did you mean immediate?)',
    ].join('\n'),
  });
});

test('an oracle that fails is told before anything is learnt', async () => {
  const dir = freshFolder();
  const toy = new URL('../../src/env/toy-lookup/index.ts', import.meta.url).href;
  const broken = "scripts: { ...toy.scripts, oracle: () => { throw new Error('no answer'); } }";
  writeFileSync(join(dir, 'environment.ts'), `import toy from '${toy}';\nexport default { ...toy, ${broken} };\n`);
  const lines: string[] = [];
  const run = trainShipped(
    'toy-lookup-tabular.yaml',
    [...SMALL_TABULAR, 'workers=1', `environment.module=${join(dir, 'environment.ts')}`],
    { onProgress: (phase) => lines.push(phase) },
  );
  await expect(run).rejects.toMatchObject({ message: expect.stringContaining('no answer') });
  expect(lines).not.toContain('train');
});

test('a script that only fails is told with its reason, not left out of the mixture', async () => {
  const dir = freshFolder();
  const toy = new URL('../../src/env/toy-lookup/index.ts', import.meta.url).href;
  const broken = "scripts: { ...toy.scripts, skip: () => { throw new Error('no way'); } }";
  writeFileSync(join(dir, 'environment.ts'), `import toy from '${toy}';\nexport default { ...toy, ${broken} };\n`);
  const overrides = [...SMALL_TRANSFORMER, 'workers=1', `environment.module=${join(dir, 'environment.ts')}`];
  await expect(trainShipped('toy-lookup.yaml', overrides)).rejects.toMatchObject({
    code: 'NO_USABLE_ROLLOUT',
    message: expect.stringContaining('no way'),
  });
});
