import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Environment } from '../../../src/env/environment.ts';
import { importEnvironment } from '../../../src/env/load.ts';
import { RolloutPool } from '../../../src/env/rollouts/pool.ts';
import { RolloutRunner } from '../../../src/env/rollouts/rollout-runner.ts';
import type { PolicySpec } from '../../../src/env/rollouts/rollouts.ts';
import type { TokenPolicy } from '../../../src/policy/token-policy.ts';
import { Tokenizer } from '../../../src/policy/tokenizer.ts';
import type { IsogymError } from '../../../src/records/errors.ts';
import { generator } from '../../../src/records/random.ts';
import { type PublicTask, publicPart } from '../../../src/records/task.ts';
import type { Episode } from '../../../src/records/trajectory.ts';
import {
  atOnce,
  FakeTokenPolicy,
  interrupting,
  requestOf,
  requestsOf,
  TOY_LOOKUP,
  TRIAL,
} from '../../fixtures/rollouts.ts';

const bytes = (episodes: readonly Episode[]) => episodes.map((episode) => JSON.stringify(episode)).join('\n');
const scripted = (script: string): PolicySpec => ({ kind: 'scripted', script });

function randomTable(): Float32Array {
  const random = generator('table');
  return Float32Array.from({ length: 24 * 4 }, () => 4 * random() - 2);
}

describe.each(['thread', 'process'] as const)('isolation: %s:', (isolation) => {
  let toyLookup: Environment;
  let trialEnvironment: Environment;
  let alone: RolloutRunner;
  const toy: RolloutPool[] = [];
  let trial: RolloutPool;

  beforeAll(async () => {
    toyLookup = await importEnvironment(TOY_LOOKUP);
    trialEnvironment = await importEnvironment(TRIAL);
    alone = await RolloutRunner.create({ environment: TOY_LOOKUP, options: {} });
    for (const workers of isolation === 'thread' ? [1, 2, 4] : [1, 2, 3]) {
      toy.push(await RolloutPool.start({ environment: TOY_LOOKUP, options: {}, reset: 'state', workers, isolation }));
    }
    trial = await RolloutPool.start({ environment: TRIAL, options: {}, workers: 2, isolation });
  }, 60_000);
  afterAll(() => Promise.all([alone.close(), trial.close(), ...toy.map((pool) => pool.close())]));

  describe('the number of workers', () => {
    it.each<[string, PolicySpec]>([
      ['scripted', scripted('oracle')],
      ['uniform', { kind: 'uniform' }],
      ['tabular', { kind: 'tabular', table: randomTable(), version: 2, temperature: 0.7, greedy: false }],
      ['greedy tabular', { kind: 'tabular', table: randomTable(), version: 2, temperature: 1, greedy: true }],
    ])(
      'does not change a byte of the episodes of a %s policy',
      async (_, policy) => {
        // Not a multiple of any chunk.
        const requests = requestsOf(toyLookup, 50, 3).slice(1);
        const expected = bytes(await alone.run(requests, policy));
        for (const pool of toy) expect(bytes(await pool.run(requests, policy))).toBe(expected);
      },
      30_000,
    );

    it('does not change a byte of the episodes of a token policy, nor its batches, nor the order of releases', async () => {
      const requests = requestsOf(toyLookup, 30);
      const reference = new FakeTokenPolicy(toyLookup);
      const expected = bytes(await alone.run(requests, { kind: 'tokens', policy: reference }));
      for (const pool of toy) {
        const policy = new FakeTokenPolicy(toyLookup);
        expect(bytes(await pool.run(requests, { kind: 'tokens', policy }))).toBe(expected);
        expect(policy.batches).toEqual(reference.batches);
        expect(policy.released).toEqual(reference.released);
      }
      expect(reference.batches.length).toBeGreaterThan(1);
    }, 30_000);

    it('may exceed the number of episodes', async () => {
      const requests = requestsOf(toyLookup, 2);
      for (const policy of [scripted('oracle'), { kind: 'tokens', policy: new FakeTokenPolicy(toyLookup) }] as const) {
        expect(await toy[2]!.run(requests, policy)).toHaveLength(2);
        expect(await toy[2]!.run([], policy)).toEqual([]);
      }
    });

    it('case 24: runs begun at once on one pool give what each gives alone', async () => {
      const requests = [requestsOf(toyLookup, 20), requestsOf(toyLookup, 30, 2)];
      const kinds = (): PolicySpec[] => [
        { kind: 'tokens', policy: new FakeTokenPolicy(toyLookup) },
        { kind: 'uniform' },
      ];
      const expected: string[] = [];
      for (const some of requests) for (const policy of kinds()) expected.push(bytes(await alone.run(some, policy)));
      const together = requests.flatMap((some) => kinds().map((policy) => toy[1]!.run(some, policy)));
      expect((await Promise.all(together)).map(bytes)).toEqual(expected);
    }, 30_000);

    it('runs begun at once follow each other: a token policy is asked by one at a time', async () => {
      // The first worker's half of the long run answers at once, so that this worker is free while the other one goes on.
      const tokenizer = new Tokenizer([]);
      const requests = requestsOf(trialEnvironment, 9);
      const [long, short] = [requests.slice(0, 8), requests.slice(8)];
      const ending = new Set(long.filter((_, i) => i % 2 === 0).map(({ id }) => id));
      const rounds = new Map<string, number>();
      const asked: string[] = [];
      const policy: TokenPolicy = {
        name: 'lasting',
        version: 1,
        tick: atOnce((batch) => {
          asked.push(...batch.map(({ episodeId }) => episodeId));
          return batch.map(({ episodeId }) => {
            const round = rounds.get(episodeId) ?? 0;
            rounds.set(episodeId, round + 1);
            const text = ending.has(episodeId) || round === 7 ? '{"final":"ok"}' : '{"tool":"dice","args":{}}';
            return { ids: [...tokenizer.encode(text), tokenizer.end], logprobs: null, cutOff: false };
          });
        }),
        release: () => {},
      };
      await Promise.all([long, short].map((some) => trial.run(some, { kind: 'tokens', policy })));
      const first = asked.indexOf(short[0]!.id);
      expect(first).toBe(4 + 4 * 8);
      expect(new Set(asked.slice(first))).toEqual(new Set([short[0]!.id]));
    });
  });

  describe('what crosses to a worker', () => {
    it('is refused where it nests deeper than a stack is deep, whoever runs it', async () => {
      const [request] = requestsOf(toyLookup, 1);
      const nested = JSON.parse('['.repeat(100_000) + ']'.repeat(100_000));
      const task = { ...request!.task, public: nested };
      const [parent] = await alone.run([request!], scripted('oracle'));
      const [step, ...steps] = parent!.steps;
      const calls = step!.action.calls.map((call) => ({ ...call, arguments: { key: nested } }));
      const made = { ...parent!, steps: [{ ...step!, action: { ...step!.action, calls } }, ...steps] };
      for (const engine of [alone, toy[1]!]) {
        const refused = { code: 'TOO_DEEP', exitCode: 2, hint: expect.any(String) };
        await expect(engine.run([{ ...request!, task }], { kind: 'uniform' })).rejects.toMatchObject({
          ...refused,
          message: `task ${task.id}: public: expected at most 500 levels of objects and arrays, found more`,
        });
        const message = `episode ${made.id}: expected at most 1000 levels of objects and arrays, found more`;
        const forked = { ...request!, fork: { parent: made, step: 1 } };
        await expect(engine.run([forked], { kind: 'uniform' })).rejects.toMatchObject({ ...refused, message });
        const again: PolicySpec = { kind: 'recorded', name: made.policy, episodes: [made] };
        await expect(engine.run([request!], again)).rejects.toMatchObject({ ...refused, message });
        expect(await engine.run([request!], scripted('oracle'))).toHaveLength(1);
      }
    });

    it('is the public part of a task, also where an object carries more', async () => {
      const task = toyLookup.task('tasks', 0, { values: 99 });
      const request = { ...requestOf(task as unknown as PublicTask), secret: 'held' };
      const [episode] = await trial.run([request], scripted('confess'));
      expect(JSON.parse(episode?.final ?? '')).toEqual(publicPart(task));
    });

    it('case 18: strings of every kind go there and back unchanged', async () => {
      const task = { id: 't', prompt: '你好 😀 \u2028 \0 \ud800', public: {} };
      const [episode] = await trial.run([requestOf(task)], scripted('confess'));
      expect(episode?.prompt).toBe(task.prompt);
      expect(JSON.parse(episode?.final ?? '')).toEqual(task);
    });
  });

  describe('case 20: a worker that dies', () => {
    it('loses the episode that killed it and no other', async () => {
      const requests = requestsOf(trialEnvironment, 20);
      const episodes = await trial.run(requests, scripted('mortal'));
      expect(episodes.map(({ id }) => id)).toEqual(requests.map(({ id }) => id));
      for (const [i, episode] of episodes.entries()) {
        if (i % 10 === 7) {
          expect(episode).toMatchObject({
            stop: 'sandbox-failure',
            final: null,
            taskId: `trial-${i}`,
            policy: 'scripted:mortal',
          });
          expect(episode).toMatchObject({ failure: 'died' });
          expect(episode.stopDetail).toMatch(/exited|exit code 7/);
        } else {
          expect(episode).toMatchObject({ stop: 'final', taskId: `trial-${i}` });
        }
      }
    }, 30_000);

    it('loses no other episode of a token policy either: they are told again what they were told, and go on', async () => {
      // Every other request is one worker's. Everyone throws the dice twice; the third episode then takes the poison.
      const tokenizer = new Tokenizer([]);
      const requests = requestsOf(trialEnvironment, 8);
      const poisoning = (poison: string) => {
        const rounds = new Map<string, number>();
        const asked: string[][] = [];
        const policy: TokenPolicy = {
          name: 'poisoning',
          version: 1,
          tick: atOnce((batch) => {
            asked.push(batch.map(({ episodeId }) => episodeId));
            return batch.map(({ episodeId }) => {
              const round = rounds.get(episodeId) ?? 0;
              rounds.set(episodeId, round + 1);
              const first = episodeId === requests[0]!.id;
              const poisoned = episodeId === requests[2]!.id && round === 2;
              const text =
                (first && round === 1) || round === 4
                  ? '{"final":"ok"}'
                  : poisoned
                    ? poison
                    : '{"tool":"dice","args":{}}';
              const ids = [...tokenizer.encode(text), tokenizer.end];
              return { ids, logprobs: ids.map(() => -1), cutOff: false };
            });
          }),
          release: () => {},
        };
        return { policy, asked };
      };
      const { policy, asked } = poisoning('{"tool":"poison","args":{}}');
      const episodes = await trial.run(requests, { kind: 'tokens', policy });
      expect(episodes.map(({ stop }) => stop)).toEqual([
        'final',
        'final',
        'sandbox-failure',
        ...Array(5).fill('final'),
      ]);
      // Nobody was asked twice, and what the others came to is what they come to without it.
      expect(asked.map((batch) => batch.length)).toEqual([8, 8, 7, 6, 6]);
      const calm = await trial.run(requests, { kind: 'tokens', policy: poisoning('{"final":"ok"}').policy });
      expect(bytes(episodes.filter((_, i) => i !== 2))).toBe(bytes(calm.filter((_, i) => i !== 2)));
      // The pool is whole again.
      const after = await trial.run(requests, scripted('oracle'));
      expect(after.every(({ stop }) => stop === 'final')).toBe(true);
    }, 30_000);
  });

  describe('interruptions', () => {
    it('before the run: every episode is cancelled, none is lost', async () => {
      const requests = requestsOf(toyLookup, 40);
      for (const policy of [scripted('oracle'), { kind: 'tokens', policy: new FakeTokenPolicy(toyLookup) }] as const) {
        const episodes = await toy[1]!.run(requests, policy, AbortSignal.abort());
        expect(episodes).toHaveLength(40);
        expect(new Set(episodes.map(({ stop }) => stop))).toEqual(new Set(['cancelled']));
      }
    });

    it('in the midst of episodes that act in the workers: those that have ended are kept, the rest is cancelled', async () => {
      const abort = new AbortController();
      const requests = requestsOf(trialEnvironment, 400);
      const running = trial.run(requests, scripted('endless'), abort.signal);
      setImmediate(() => abort.abort());
      const episodes = await running;
      expect(episodes.map(({ id }) => id)).toEqual(requests.map(({ id }) => id));
      const stops = new Set(episodes.map(({ stop }) => stop));
      expect(stops).toContain('cancelled');
      for (const stop of stops) expect(['cancelled', 'max-steps']).toContain(stop);
    });

    it('in the midst of a token policy: what has ended is kept, the rest is cancelled, and the pool serves on', async () => {
      const abort = new AbortController();
      const inner = new FakeTokenPolicy(toyLookup);
      const policy = interrupting(abort, inner);
      const requests = requestsOf(toyLookup, 24);
      const episodes = await toy[1]!.run(requests, { kind: 'tokens', policy }, abort.signal);
      expect(new Set(episodes.map(({ stop }) => stop))).toEqual(new Set(['final', 'cancelled']));
      expect([...inner.released].sort()).toEqual(requests.map(({ id }) => id).sort());
      const after = await toy[1]!.run(requests, scripted('oracle'));
      expect(after.every(({ stop }) => stop === 'final')).toBe(true);
    });
  });

  it('what does not suit the environment is an error of the caller, and the pool serves on', async () => {
    const error: IsogymError = await trial
      .run(requestsOf(trialEnvironment, 2), scripted('orcale'))
      .catch((error) => error);
    expect(error).toMatchObject({ code: 'UNKNOWN_SCRIPT', hint: 'did you mean oracle?' });
    expect(await trial.run(requestsOf(trialEnvironment, 2), scripted('oracle'))).toHaveLength(2);
  });
});

it('a pool of no workers, and one of an environment that cannot be loaded, do not start', async () => {
  const refusal = (o: Parameters<typeof RolloutPool.start>[0]) => RolloutPool.start(o).catch((error) => error);
  expect(await refusal({ environment: TRIAL, options: {}, workers: 0 })).toMatchObject({ code: 'WORKERS' });
  expect(await refusal({ environment: 'file:///nowhere.ts', options: {}, workers: 1 })).toMatchObject({
    code: 'ENVIRONMENT_BROKEN',
  });
});
