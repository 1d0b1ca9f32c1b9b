import { cpSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { expectSameRun, freshFolder, resume, textOf, trainShipped } from './runs.ts';

const LEAKY = fileURLToPath(new URL('../fixtures/leaky/index.ts', import.meta.url));

/** A run of a world that leaks, and after which iteration it was found to: `seed` decides who is looked at. */
async function leaking(seed: number, stopAfter?: number) {
  let done = 0;
  let foundAfter: number | undefined;
  const stop = new AbortController();
  const { path, outcome } = await trainShipped(
    'toy-lookup-tabular.yaml',
    [
      ...[`environment.module=${LEAKY}`, `seed=${seed}`, 'workers=1', 'iterations=6', 'tasks.train=8'],
      ...['tasks.heldOut=2', 'evaluation.tasks=2', 'batch.groups=2', 'group.size=8'],
      ...['checkpoint.every=1', 'checkpoint.keep=9'],
    ],
    {
      signal: stop.signal,
      onProgress: (phase, at) => {
        if (phase === 'train') done = at;
        if (done === stopAfter) stop.abort();
      },
      onNote: (text) => {
        if (text.startsWith('reset level state is not earned')) foundAfter = done;
      },
    },
  );
  return { path, outcome, foundAfter };
}

test('a reset level that was lost in the midst of a run stays lost where it is resumed', async () => {
  const whole = await leaking(0);
  expect(whole.foundAfter).toBe(2);
  const { path, outcome } = await leaking(0, 3);
  expect(outcome.interrupted).toBe(true);
  expect(textOf(path, 'checkpoints/000001/state.json')).not.toContain('resetLost');
  expect(JSON.parse(textOf(path, 'checkpoints/000003-2/state.json')).resetLost).toBe(true);
  await resume(path);
  expectSameRun(path, whole.path);
}, 120_000);

test('one that rollouts ahead have lost is lost from their own iteration on: a longer run comes to what one at once comes to', async () => {
  const overrides = (iterations: number) => [
    ...[`environment.module=${LEAKY}`, 'seed=0', 'workers=1', `iterations=${iterations}`, 'tasks.train=8'],
    ...['tasks.heldOut=2', 'evaluation.tasks=2', 'batch.groups=2', 'group.size=8', 'backend=cpu'],
    ...['checkpoint.every=1', 'checkpoint.keep=9', 'evaluation.every=1', 'rollouts.staleness=1'],
    ...['algorithm.estimator=grpo', 'algorithm.baseline=group-mean', 'algorithm.scale=group-std', 'optimizer.decay=0'],
  ];
  const { path: whole } = await trainShipped('toy-lookup-tabular.yaml', overrides(6));
  const states = [1, 2, 3].map((at) => textOf(whole, `checkpoints/00000${at}/state.json`).includes('resetLost'));
  expect(states).toEqual([false, false, true]);
  const { path } = await trainShipped('toy-lookup-tabular.yaml', overrides(2));
  await resume(path, ['iterations=6']);
  expectSameRun(path, whole);
  // What they came to, and under which level. Episodes of a world that leaks also show who was in it before, until it is found out.
  for (const file of readdirSync(join(whole, 'evaluations')).filter((name) => name.endsWith('.json'))) {
    expect(textOf(path, `evaluations/${file}`) === textOf(whole, `evaluations/${file}`), file).toBe(true);
  }
}, 120_000);

test('so does one that was lost in an evaluation, from the checkpoint before it', async () => {
  const whole = await leaking(8);
  expect(whole.foundAfter).toBe(0);
  const path = join(freshFolder(), 'run');
  cpSync(whole.path, path, { recursive: true });
  for (const later of readdirSync(join(path, 'checkpoints'))) {
    if (later !== '000000') rmSync(join(path, 'checkpoints', later), { recursive: true });
  }
  expect(textOf(path, 'checkpoints/000000/state.json')).not.toContain('resetLost');
  await resume(path);
  expectSameRun(path, whole.path);
}, 120_000);
