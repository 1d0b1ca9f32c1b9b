import { beforeAll, expect, it } from 'vitest';
import toyLookup from '../../src/env/toy-lookup/index.ts';
import { selectBackend } from '../../src/policy/backends/select.ts';
import type { Score, Trajectory } from '../../src/records/trajectory.ts';
import { agentOf } from '../../src/train/agent.ts';
import type { Rig } from '../../src/train/collect.ts';
import { configSchema } from '../../src/train/config.ts';
import { learnerFor } from '../../src/train/learner.ts';
import { reinforce } from '../../src/train/loop.ts';
import exactAnswer from '../../src/verifiers/exact-answer/index.ts';
import { episode } from './made.ts';

beforeAll(() => selectBackend('cpu'));

it('keeps a batch in which nothing is usable, and says why', async () => {
  const config = configSchema.parse({
    iterations: 1,
    environment: { module: 'toy-lookup' },
    verifier: { module: 'exact-answer' },
    policy: { kind: 'tabular' },
    batch: { groups: 1 },
    group: { size: 2 },
    optimizer: { learningRate: 0.1 },
  });
  const unscored: Score = { score: null, success: false, reasons: ['the verifier threw: nope'] };
  const rig: Rig = {
    rollouts: {
      run: async (requests) => requests.map(({ id, group, task }) => ({ ...episode({ id, group }), taskId: task.id })),
      close: async () => {},
    },
    verifiers: { score: async (inputs) => inputs.map(() => unscored), close: async () => {} },
    verifier: exactAnswer,
    stepPenalty: 0,
  };
  const agent = agentOf(config.policy, toyLookup);
  const learner = learnerFor(agent, config, { weights: agent.model.init(() => 0) });
  const kept: Trajectory[] = [];
  const run = reinforce({
    config,
    rig,
    agent,
    learner,
    tasks: [toyLookup.task('s', 0, { values: 9 })],
    from: 0,
    now: () => 0,
    commit: () => {
      throw new Error('expected no commit');
    },
    failed: (trajectories) => void kept.push(...trajectories),
  });
  await expect(run).rejects.toThrow('found none among 2 (2 final); episode 0.0.0: the verifier threw: nope');
  expect(kept.map(({ id }) => id)).toEqual(['0.0.0', '0.0.1']);
  learner.dispose();
});
