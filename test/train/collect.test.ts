import { expect, it } from 'vitest';
import type { Ended, RolloutRequest } from '../../src/env/rollouts/rollouts.ts';
import type { Episode } from '../../src/records/trajectory.ts';
import { collect, groupRequests, type Rig } from '../../src/train/collect.ts';
import exactAnswer from '../../src/verifiers/exact-answer/index.ts';
import type { VerifierInput } from '../../src/verifiers/verifier.ts';
import { episode, segment } from './made.ts';

const tasks = Array.from({ length: 4 }, (_, i) => ({ id: `t${i}`, prompt: 'p', public: {}, held: { answer: `${i}` } }));
const requests = groupRequests(tasks, 1, 'seed', 0);

const made = ({ id, group, task }: RolloutRequest, final: string): Episode => ({
  ...episode({ id, group, segments: [segment('0110010')] }),
  taskId: task.id,
  final,
});

it('cases 05 and 06: the place in the draw makes a group, not the prompt, not the task, so that nothing can merge two', () => {
  const [one, other] = [
    { ...tasks[0]!, public: { hidden: 1 } },
    { ...tasks[1]!, public: { hidden: 2 } },
  ];
  expect(one.prompt).toBe(other.prompt);
  // The first is drawn twice, as where a pass over the tasks ends in an iteration.
  const requests = groupRequests([one, other, one], 2, 'seed', 7);
  expect(requests.map(({ id, group, task }) => [id, group, task.public])).toEqual([
    ['7.0.0', '7.0', one.public],
    ['7.0.1', '7.0', one.public],
    ['7.1.0', '7.1', other.public],
    ['7.1.1', '7.1', other.public],
    ['7.2.0', '7.2', one.public],
    ['7.2.1', '7.2', one.public],
  ]);
  expect(new Set(requests.map(({ seed }) => seed)).size).toBe(6);
});

/** The verifier scores an answer that is the held one, and records what it was asked and when the run had ended. */
function rigOf(run: (requests: readonly RolloutRequest[], ended: Ended) => Promise<readonly Episode[]>) {
  const asked: { readonly finals: readonly (string | null)[]; readonly during: boolean }[] = [];
  let running = true;
  const rig: Rig = {
    rollouts: {
      async run(requests, _policy, _signal, ended = () => {}) {
        const episodes = await run(requests, ended);
        running = false;
        return episodes;
      },
      close: async () => {},
    },
    verifiers: {
      async score(inputs: readonly VerifierInput[]) {
        asked.push({ finals: inputs.map(({ final }) => final), during: running });
        return inputs.map(({ final, held }) => {
          const right = final === (held as { answer?: string } | null)?.answer;
          return { score: right ? 1 : 0, success: right, reasons: [] };
        });
      },
      close: async () => {},
    },
    verifier: exactAnswer,
    stepPenalty: 0,
  };
  return { rig, asked };
}

it('judges the first episodes while others still run, each once, with a canary in every batch', async () => {
  const { rig, asked } = rigOf(async (requests, ended) => {
    const episodes = requests.map((request, i) => made(request, `${i % 2 === 0 ? i : 'wrong'}`));
    ended([episodes[3] as Episode, episodes[2] as Episode]);
    ended([episodes[0] as Episode]);
    await new Promise((resolve) => setTimeout(resolve, 5));
    return episodes;
  });
  const trajectories = await collect(rig, requests, tasks, { kind: 'uniform' });
  expect(trajectories.map(({ taskId, verdict }) => [taskId, verdict.score])).toEqual([
    ['t0', 1],
    ['t1', 0],
    ['t2', 1],
    ['t3', 0],
  ]);
  expect(asked.map(({ finals, during }) => [finals.slice(0, -1), during])).toEqual([
    [['wrong', '2'], true],
    [['0'], true],
    [['wrong'], false],
  ]);
});

it('what counts are the episodes that the run gives, not those that it told of before', async () => {
  const { rig } = rigOf(async (requests, ended) => {
    ended(requests.map((request) => made(request, 'wrong')));
    return requests.map((request, i) => made(request, `${i}`));
  });
  const trajectories = await collect(rig, requests, tasks, { kind: 'uniform' });
  expect(trajectories.map(({ verdict }) => verdict.score)).toEqual([1, 1, 1, 1]);
});

it('a verifier that is compromised ends it, and a run that fails after that is its error alone', async () => {
  const { rig } = rigOf(async (requests, ended) => {
    ended(requests.map((request, i) => made(request, `${i}`)));
    return requests.map((request, i) => made(request, `${i}`));
  });
  const always: Rig = {
    ...rig,
    verifiers: {
      score: async (inputs) => inputs.map(() => ({ score: 1, success: true, reasons: [] })),
      close: async () => {},
    },
  };
  await expect(collect(always, requests, tasks, { kind: 'uniform' })).rejects.toMatchObject({
    code: 'VERIFIER_COMPROMISED',
  });
  const failing: Rig = {
    ...always,
    rollouts: {
      async run(requests, _policy, _signal, ended = () => {}) {
        ended(requests.map((request, i) => made(request, `${i}`)));
        await new Promise((resolve) => setTimeout(resolve, 5));
        throw new Error('the run failed');
      },
      close: async () => {},
    },
  };
  await expect(collect(failing, requests, tasks, { kind: 'uniform' })).rejects.toThrow('the run failed');
});
