import { expect, test } from 'vitest';
import { linesOf, textOf, trainShipped } from './runs.ts';

const SMALL = ['iterations=2', 'tasks.heldOut=20', 'evaluation.tasks=20', 'batch.groups=3', 'workers=2'];

test('a run in sandbox hosts leaves the same bytes as one in threads', async () => {
  const [thread, inProcess] = await Promise.all(
    ['thread', 'process'].map(
      async (isolation) =>
        (await trainShipped('toy-lookup-tabular.yaml', [...SMALL, `environment.isolation=${isolation}`])).path,
    ),
  );
  for (const file of [
    'trajectories.jsonl',
    'metrics.jsonl',
    'evaluations/trained.json',
    'evaluations/random.sampled.jsonl',
  ]) {
    expect(textOf(inProcess!, file) === textOf(thread!, file), file).toBe(true);
  }
});

test('js-puzzles trains: a transformer writes functions, processes run them, the verifier has a process of its own', async () => {
  const { path } = await trainShipped('toy-lookup.yaml', [
    'environment.module=js-puzzles',
    'environment.options={}',
    'verifier.module=function-cases',
    'iterations=1',
    'tasks.train=20',
    'tasks.heldOut=4',
    'evaluation.tasks=4',
    'policy.width=16',
    'policy.heads=2',
    'policy.kvHeads=1',
    'policy.headWidth=8',
    'policy.hidden=24',
    'warmStart.steps=1',
    'warmStart.episodes=2',
    'warmStart.demonstrations=4',
    'warmStart.mixture={oracle: 1}',
    'environment.maxSteps=2',
    'batch.groups=1',
    'group.size=2',
    'workers=2',
  ]);
  const episodes = linesOf<{ stop: string; usable: boolean }>(path, 'trajectories.jsonl');
  expect(episodes).toHaveLength(2);
  expect(episodes.every(({ usable }) => usable)).toBe(true);
  const oracle = JSON.parse(textOf(path, 'evaluations/oracle.json')) as {
    sampled: { outcomes: { success: boolean }[] };
  };
  expect(oracle.sampled.outcomes.map(({ success }) => success)).toEqual([true, true, true, true]);
}, 300_000);
