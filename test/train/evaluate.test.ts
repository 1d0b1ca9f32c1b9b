import { expect, test } from 'vitest';
import type { PolicySpec } from '../../src/env/rollouts/rollouts.ts';
import type { Schedule } from '../../src/env/rollouts/schedule.ts';
import type { Rig } from '../../src/train/collect.ts';
import { evaluate } from '../../src/train/evaluate.ts';

test('an evaluation waits for every episode, whatever ends those of training before their time', async () => {
  const asked: PolicySpec[] = [];
  const now = () => 0;
  const training: Schedule = {
    live: 7,
    now,
    deadline: 3,
    enough: 2,
    budget: 9,
    throughput: { deadlineMs: 5 },
    observe: () => {},
  };
  const rig = {
    rollouts: {
      run: async (_: unknown, policy: PolicySpec) => {
        asked.push(policy);
        return [];
      },
    },
  } as unknown as Rig;
  const policy: PolicySpec = {
    kind: 'tokens',
    policy: { name: 'fake', version: 1, tick: async () => [], release: () => {} },
  };
  for (const schedule of [training, { live: 7 }]) {
    await evaluate({ ...rig, schedule }, [], policy, 'greedy', 'seed');
  }
  await evaluate(rig, [], policy, 'greedy', 'seed');
  expect(asked.map((spec) => spec.kind === 'tokens' && spec.schedule)).toEqual([
    { live: 7, now },
    { live: 7 },
    undefined,
  ]);
});
