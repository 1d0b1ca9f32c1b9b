import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import toyLookup from '../../src/env/toy-lookup/index.ts';
import { selectBackend } from '../../src/policy/backends/select.ts';
import type { Score, Trajectory } from '../../src/records/trajectory.ts';
import { agentOf } from '../../src/train/agent.ts';
import type { Rig } from '../../src/train/collect.ts';
import { configSchema } from '../../src/train/config.ts';
import { type Learner, learnerFor } from '../../src/train/learner.ts';
import { type Iteration, reinforce } from '../../src/train/loop.ts';
import exactAnswer from '../../src/verifiers/exact-answer/index.ts';
import type { VerifierInput } from '../../src/verifiers/verifier.ts';
import { episode, segment } from './made.ts';

beforeAll(() => selectBackend('cpu'));

let learner: Learner;
afterEach(() => learner.dispose());

/** The loop over made-up episodes of three sampled tokens in two steps: one task, two rollouts, judged by `judge`. */
function loop(given: {
  judge: (input: VerifierInput, place: number) => Score;
  algorithm?: object;
  optimizer?: object;
  iterations?: number;
  rollouts?: object;
  /** In place of what runs the requests. */
  run?: (iteration: number, signal: AbortSignal | undefined) => Promise<void>;
  update?: (step: number) => Promise<void>;
}) {
  const parsed = configSchema.parse({
    iterations: given.iterations ?? 1,
    environment: { module: 'toy-lookup' },
    verifier: { module: 'exact-answer' },
    policy: { kind: 'tabular' },
    algorithm: given.algorithm,
    batch: { groups: 1 },
    group: { size: 2 },
    optimizer: { learningRate: 1, ...given.optimizer },
  });
  const config = { ...parsed, rollouts: { ...parsed.rollouts, ...given.rollouts } };
  const made = (id: string, group: string) => episode({ id, group, segments: [segment('0110010')] });
  const judged: (readonly VerifierInput[])[] = [];
  const rig: Rig = {
    rollouts: {
      run: async (requests, _, signal) => {
        await given.run?.(requests[0]?.iteration ?? -1, signal);
        return requests.map(({ id, group, task }) => ({ ...made(id, group), taskId: task.id }));
      },
      close: async () => {},
    },
    verifiers: {
      score: async (inputs) => {
        judged.push(inputs);
        return inputs.map(given.judge);
      },
      close: async () => {},
    },
    verifier: exactAnswer,
    stepPenalty: 0.1,
  };
  const agent = agentOf(config.policy, toyLookup);
  learner = learnerFor(agent, config, { weights: agent.model.init(() => 0) });
  let updates = 0;
  vi.spyOn(learner, 'version', 'get').mockImplementation(() => updates);
  const update = vi.spyOn(learner, 'reinforce').mockImplementation(async () => {
    await given.update?.(updates);
    updates++;
    return { microBatches: 1, paddingShare: 0, steps: [] };
  });
  const committed: Iteration[] = [];
  const failed: Trajectory[] = [];
  const done = reinforce({
    config,
    rig,
    agent,
    learner,
    tasks: [toyLookup.task('s', 0, { values: 9 })],
    from: 0,
    now: () => 0,
    commit: (iteration) => void committed.push(iteration),
    failed: (trajectories) => void failed.push(...trajectories),
  });
  return { done, update, committed, failed, judged };
}

/** Of two rollouts the first is right; whatever comes after them is wrong. */
const firstRight = (_: VerifierInput, place: number): Score =>
  place === 0 ? { score: 1, success: true, reasons: [] } : { score: 0, success: false, reasons: [] };

describe('what reaches the learner', () => {
  it('is under GRPO one advantage an episode, over the number of tokens', async () => {
    const { done, update } = loop({ judge: firstRight });
    await done;
    const batch = update.mock.calls[0]![0];
    expect([...batch.advantages]).toEqual([1, 1, 1, -1, -1, -1]);
    expect(batch.denominator).toBe(6);
  });

  it('is under REINFORCE the return-to-go of each step, over the number of episodes', async () => {
    const algorithm = { estimator: 'reinforce', baseline: 'none', scale: 'none' };
    const { done, update } = loop({ judge: firstRight, algorithm });
    await done;
    const batch = update.mock.calls[0]![0];
    const expected = [0.8, 0.8, 0.9, -0.2, -0.2, -0.1];
    expect([...batch.advantages]).toEqual(expected.map((value) => expect.closeTo(value, 6)));
    expect(batch.denominator).toBe(2);
  });

  it('is on-policy, and so held against the recorded logprobs, unless rollouts are carried over', async () => {
    for (const [rollouts, onPolicy] of [
      [{}, true],
      [{ budget: 9 }, false],
    ] as const) {
      const { done, update } = loop({ judge: firstRight, rollouts });
      await done;
      expect(update.mock.calls[0]?.[2]).toBe(onPolicy);
    }
  });

  it('is the scheduled learning rate', async () => {
    const { done, update, committed } = loop({
      judge: firstRight,
      iterations: 4,
      optimizer: { warmup: 2, decay: 0.5 },
    });
    await done;
    expect(update.mock.calls.map(([, rate]) => rate)).toEqual([0.5, 1, 1, 0.5]);
    expect(committed.map(({ metrics }) => metrics.learningRate)).toEqual([0.5, 1, 1, 0.5]);
  });
});

describe('what stops the loop', () => {
  it('is a batch in which nothing is usable: it is kept, and the error says why', async () => {
    const judge = () => ({ score: null, success: false, reasons: ['the verifier threw: nope'] });
    const { done, failed, committed } = loop({ judge });
    await expect(done).rejects.toThrow('found none among 2 (2 final); episode 0.0.0: the verifier threw: nope');
    expect(failed.map(({ id }) => id)).toEqual(['0.0.0', '0.0.1']);
    expect(committed).toEqual([]);
  });

  it('case 22: is a verifier that passes the canary, which is scored with every batch', async () => {
    const { done, judged, update } = loop({ judge: () => ({ score: 1, success: true, reasons: [] }) });
    await expect(done).rejects.toMatchObject({ code: 'VERIFIER_COMPROMISED' });
    expect(judged.map((inputs) => inputs.map(({ final }) => final))).toEqual([[null, null, exactAnswer.canary]]);
    expect(update).not.toHaveBeenCalled();
  });
});

describe('with rollouts ahead', () => {
  const ahead = { judge: firstRight, iterations: 4, rollouts: { staleness: 1 } };

  it('the next rollouts begin before the update ends, and the one after not before it has', async () => {
    const log: string[] = [];
    const { done, update, committed } = loop({
      ...ahead,
      run: async (iteration) => void log.push(`roll ${iteration}`),
      update: async (step) => {
        log.push(`learn ${step}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
        log.push(`learnt ${step}`);
      },
    });
    await done;
    const beside = (i: number) => [`learn ${i}`, ...(i < 3 ? [`roll ${i + 1}`] : []), `learnt ${i}`];
    expect(log).toEqual(['roll 0', ...[0, 1, 2, 3].flatMap(beside)]);
    // The first alone was rolled out under the weights that learn from it, and may be held against its recorded logprobs.
    expect(update.mock.calls.map(([, , onPolicy]) => onPolicy)).toEqual([true, false, false, false]);
    expect(committed.map(({ acting }) => acting?.version)).toEqual([0, 1, 2, 3]);
  });

  it('an update that fails stops the rollouts beside it, and what it failed on is kept', async () => {
    let stopped: unknown;
    const { done, failed, committed } = loop({
      ...ahead,
      run: (iteration, signal) =>
        iteration < 2
          ? Promise.resolve()
          : new Promise((_, reject) => {
              const stop = () => {
                stopped = signal?.reason;
                reject(stopped);
              };
              if (signal?.aborted) stop();
              else signal?.addEventListener('abort', stop);
            }),
      update: async (step) => {
        if (step === 1) throw new Error('no update');
      },
    });
    await expect(done).rejects.toThrow('no update');
    expect(stopped).toMatchObject({ message: 'no update' });
    expect(failed.map(({ id }) => id)).toEqual(['1.0.0', '1.0.1']);
    expect(committed.map(({ iteration }) => iteration)).toEqual([0]);
  });

  it('rollouts that fail end the run once what was learnt beside them is committed', async () => {
    const { done, failed, committed } = loop({
      ...ahead,
      run: async (iteration) => {
        if (iteration === 2) throw new Error('no workers');
      },
    });
    await expect(done).rejects.toThrow('no workers');
    expect(failed).toEqual([]);
    expect(committed.map(({ iteration, marks }) => [iteration, marks.next === undefined])).toEqual([
      [0, false],
      [1, true],
    ]);
  });
});
