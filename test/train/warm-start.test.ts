import { expect, it } from 'vitest';
import type { RolloutEngine } from '../../src/env/rollouts/rollouts.ts';
import toyLookup from '../../src/env/toy-lookup/index.ts';
import { demonstrate } from '../../src/train/warm-start.ts';
import exactAnswer from '../../src/verifiers/exact-answer/index.ts';
import { episode, segment } from './made.ts';

it('which task a script gets does not depend on the order of the mixture, which no hash of the config holds', async () => {
  const tasks = Array.from({ length: 10 }, (_, i) => toyLookup.task('seed', i, toyLookup.options.parse({})));
  const given = async (mixture: Record<string, number>) => {
    const scripts: Record<string, readonly string[]> = {};
    const rollouts: RolloutEngine = {
      run: async (requests, policy) => {
        if (policy.kind !== 'scripted') throw new Error('expected a script');
        scripts[policy.script] = requests.map(({ task }) => task.id);
        return requests.map(({ id, group, task }) => ({
          ...episode({ id, group, segments: [segment('01')] }),
          taskId: task.id,
        }));
      },
      close: async () => {},
    };
    const verifiers = {
      score: async (inputs: readonly { readonly taskId: string }[]) =>
        inputs.map((_, i) => ({ score: i === 1 ? null : 0, success: false, reasons: [] })),
      close: async () => {},
    };
    const rig = { rollouts, verifiers, verifier: exactAnswer, stepPenalty: 0, environment: toyLookup };
    const config = { steps: 1, episodes: 1, demonstrations: 10, learningRate: 1, decay: 0, mixture };
    const notes: string[] = [];
    const note = (text: string) => notes.push(text);
    const order = (await demonstrate(config, rig, tasks, '0', { note })).map(({ taskId }) => taskId);
    return { scripts, order, notes };
  };
  const one = await given({ oracle: 0.3, skip: 0.3, immediate: 0.4 });
  expect(Object.entries(one.scripts).map(([name, ids]) => [name, ids.length])).toEqual([
    ['oracle', 3],
    ['skip', 3],
    ['immediate', 4],
  ]);
  // One of each script's could not be scored.
  expect(one.notes).toEqual([expect.stringMatching(/^3 of 10 demonstrations are not usable and teach nothing/)]);
  expect(await given({ immediate: 0.4, oracle: 0.3, skip: 0.3 })).toEqual(one);
});
