import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Environment } from '../../../src/env/environment.ts';
import { importEnvironment } from '../../../src/env/load.ts';
import { RolloutRunner } from '../../../src/env/rollouts/rollout-runner.ts';
import type { PolicySpec } from '../../../src/env/rollouts/rollouts.ts';
import type { TokenPolicy } from '../../../src/policy/token-policy.ts';
import type { IsogymError } from '../../../src/records/errors.ts';
import { carriedLinks, linksOf } from '../../../src/records/hash-chain.ts';
import { type PublicTask, publicPart } from '../../../src/records/task.ts';
import type { Episode } from '../../../src/records/trajectory.ts';
import { FakeTokenPolicy, interrupting, requestOf, requestsOf, TOY_LOOKUP, TRIAL } from '../../fixtures/rollouts.ts';

const ROOMY = new URL('../../fixtures/roomy/index.ts', import.meta.url).href;

let toyLookup: Environment;
let toy: RolloutRunner;
let trial: RolloutRunner;

beforeAll(async () => {
  toyLookup = await importEnvironment(TOY_LOOKUP);
  toy = await RolloutRunner.create({ environment: TOY_LOOKUP, options: {} });
  trial = await RolloutRunner.create({ environment: TRIAL, options: {} });
});
afterAll(() => Promise.all([toy.close(), trial.close()]));

const scripted = (script: string): PolicySpec => ({ kind: 'scripted', script });
const trialTask = (id: string, more = {}): PublicTask => ({ id, prompt: 'Try.', public: more });

describe('what is asked is what is answered', () => {
  it('every request has its episode, in order, with its ids, seed and group', async () => {
    const requests = [...requestsOf(toyLookup, 5, 2)].reverse();
    const episodes = await toy.run(requests, scripted('oracle'));
    for (const [i, { id, group, task, iteration, rollout, seed }] of requests.entries()) {
      expect(episodes[i]).toMatchObject({ id, group, taskId: task.id, iteration, rollout, seed });
    }
    expect(episodes).toHaveLength(10);
  });

  it('case 06: two tasks with the same prompt stay two groups, since the group is given and never guessed', async () => {
    const task = (id: string, fact: string) => trialTask(id, { facts: { x: fact } });
    const requests = [requestOf(task('one', '1')), requestOf(task('two', '2'))];
    const episodes = await trial.run(requests, scripted('oracle'));
    expect(episodes.map(({ prompt }) => prompt)).toEqual(['Try.', 'Try.']);
    expect(episodes.map(({ group }) => group)).toEqual(['0.one', '0.two']);
  });

  it('the chance of the world and of the policy come from the seed, each from its own part of it', async () => {
    const roll = async (seed: string) => {
      const [episode] = await trial.run([{ ...requestOf(trialTask('t')), seed }], scripted('oracle'));
      return episode?.final;
    };
    expect(await roll('a')).toMatch(/^0\.\d+$/);
    expect(await roll('a')).toBe(await roll('a'));
    expect(await roll('b')).not.toBe(await roll('a'));
  });

  it('a script cannot change what its siblings are begun with', async () => {
    const shared = trialTask('t', { facts: { x: '1' } });
    const episodes = await trial.run([requestOf(shared, 0), requestOf(shared, 1)], scripted('meddle'));
    for (const { stop, stopDetail } of episodes) {
      expect(stop).toBe('policy-failure');
      expect(stopDetail).toContain('read only');
    }
  });

  it('setup overrides the step limit', async () => {
    const short = await RolloutRunner.create({ environment: TOY_LOOKUP, options: {}, maxSteps: 2 });
    const [episode] = await short.run(requestsOf(toyLookup, 1), scripted('oracle'));
    expect(episode).toMatchObject({ stop: 'max-steps', final: null });
    expect(episode?.steps).toHaveLength(2);
    await short.close();
  });

  it.each(['state', 'context', 'isolate'] as const)('reset level %s gives the same episodes', async (reset) => {
    const runner = await RolloutRunner.create({ environment: TOY_LOOKUP, options: {}, reset });
    const requests = requestsOf(toyLookup, 20);
    expect(await runner.run(requests, { kind: 'uniform' })).toEqual(await toy.run(requests, { kind: 'uniform' }));
    await runner.close();
  });
});

describe('what is held stays outside', () => {
  it('a whole task is a type error, and should one come all the same, a policy sees its public part alone', async () => {
    const task = toyLookup.task('tasks', 0, { values: 99 });
    // @ts-expect-error: a Task has `held`, a PublicTask must not.
    const whole: PublicTask = task;
    const [episode] = await trial.run([requestOf(whole)], scripted('confess'));
    expect(JSON.parse(episode?.final ?? '')).toEqual(publicPart(task));
  });
});

describe('failures', () => {
  it('case 19: a world that does not open fails its episode, and its siblings finish', async () => {
    const requests = ['a', 'b', 'c'].map((id) => requestOf(trialTask(id, { broken: id === 'b' })));
    const episodes = await trial.run(requests, scripted('oracle'));
    expect(episodes.map(({ stop }) => stop)).toEqual(['final', 'environment-failure', 'final']);
    expect(episodes[1]).toMatchObject({ final: null, steps: [], segments: [] });
    expect(episodes[1]?.stopDetail).toContain('this world does not open');
  });

  it('an action that nests too deep is one that cannot be read, and costs neither the run nor the record', async () => {
    const runner = await RolloutRunner.create({ environment: ROOMY, options: {} });
    const deep = `{"tool":"lookup","args":{"key":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`;
    const texts = [deep, '{"tool":"dice","args":{}}', '{"final":"4600"}'];
    const [episode] = await runner.act([requestOf(trialTask('t'))], { kind: 'texts', texts });
    await runner.close();
    expect(episode).toMatchObject({ stop: 'final', final: '4600' });
    const [call] = episode!.steps[0]!.action.calls;
    expect(call).toMatchObject({ name: 'lookup', arguments: null, malformed: expect.stringContaining('500 levels') });
    expect(call!.raw).toContain('['.repeat(100_000));
    const written = JSON.parse(JSON.stringify(episode)) as Episode;
    expect(linksOf(written)).toEqual(carriedLinks(episode!));
  });

  it.each([
    [scripted('orcale'), 'UNKNOWN_SCRIPT', 'did you mean oracle?'],
    [
      { kind: 'tabular', table: new Float32Array(4), version: 0, temperature: 1, greedy: false },
      'POLICY_UNFIT',
      undefined,
    ],
  ] as const)(
    '%j does not suit the environment: an error of the caller, not of an episode',
    async (policy, code, hint) => {
      const error: IsogymError = await trial.run([requestOf(trialTask('t'))], policy).catch((error) => error);
      expect(error).toMatchObject({ code, hint });
    },
  );

  it('a run that is interrupted keeps the episodes that have ended, the others are cancelled', async () => {
    const abort = new AbortController();
    const requests = requestsOf(toyLookup, 200);
    const running = toy.run(requests, { kind: 'uniform' }, abort.signal);
    setImmediate(() => abort.abort());
    const stops = (await running).map(({ stop }) => stop);
    expect(stops).toHaveLength(200);
    const ended = stops.filter((stop) => stop !== 'cancelled').length;
    expect(ended).toBeGreaterThan(0);
    expect(ended).toBeLessThan(200);
    // Those that had not begun come last.
    expect(stops.at(-1)).toBe('cancelled');
  });
});

describe('a token policy', () => {
  it('gets all live episodes at first, one request a step, only the tokens that it does not know, and is told who has ended', async () => {
    const policy = new FakeTokenPolicy(toyLookup);
    const requests = requestsOf(toyLookup, 12);
    const episodes = await toy.run(requests, { kind: 'tokens', policy });
    expect(policy.batches[0]).toHaveLength(12);
    for (const { id, segments, steps } of episodes) {
      expect(policy.batches.flat().filter((request) => request.episodeId === id)).toHaveLength(steps.length);
      const [segment] = segments;
      const given = policy.batches.flat().flatMap((request) => (request.episodeId === id ? request.newIds : []));
      expect(given).toEqual(segment!.ids.filter((_, i) => segment!.actionMask[i] === 0));
      expect(segment).toMatchObject({ trainable: true });
      expect(segment!.policyVersion).toEqual(segment!.actionMask.map((mask) => (mask === 1 ? 3 : null)));
      expect(steps.length).toBeGreaterThan(0);
    }
    expect([...policy.released].sort()).toEqual(requests.map(({ id }) => id).sort());
  });

  it('case 11: the trainable ids are the sampled ids, in order', async () => {
    const sampled = new Map<string, number[]>();
    const inner = new FakeTokenPolicy(toyLookup);
    const policy: TokenPolicy = {
      name: 'noting',
      version: 1,
      async tick(joining) {
        const answered = await inner.tick(joining);
        for (const { episodeId, reply } of answered) {
          sampled.set(episodeId, [...(sampled.get(episodeId) ?? []), ...reply.ids]);
        }
        return answered;
      },
      release: () => {},
    };
    for (const { id, segments } of await toy.run(requestsOf(toyLookup, 30), { kind: 'tokens', policy })) {
      expect(segments[0]!.ids.filter((_, i) => segments[0]!.actionMask[i] === 1)).toEqual(sampled.get(id));
    }
  });

  it('that fails in one tick fails the actions that it was writing, not the run', async () => {
    const inner = new FakeTokenPolicy(toyLookup);
    let ticks = 0;
    const policy: TokenPolicy = {
      name: 'failing',
      version: 1,
      tick: (joining) => (++ticks === 9 ? Promise.reject(new Error('device lost')) : inner.tick(joining)),
      release: () => {},
    };
    const episodes = await toy.run(requestsOf(toyLookup, 12), { kind: 'tokens', policy });
    const failed = episodes.filter(({ stop }) => stop === 'policy-failure');
    expect(failed.length).toBeGreaterThan(0);
    expect(failed.length).toBeLessThan(12);
    for (const episode of failed) expect(episode).toMatchObject({ stopDetail: 'device lost' });
    for (const { stop } of episodes) expect(['policy-failure', 'final']).toContain(stop);
  });

  it('cannot keep a cancelled run waiting', async () => {
    const abort = new AbortController();
    const inner = new FakeTokenPolicy(toyLookup);
    const policy = interrupting(abort, inner);
    const episodes = await toy.run(requestsOf(toyLookup, 12), { kind: 'tokens', policy }, abort.signal);
    expect(inner.batches).toHaveLength(1);
    expect(new Set(episodes.map(({ stop }) => stop))).toEqual(new Set(['final', 'cancelled']));
  });

  it('can have 200 episodes live at once, each in a world of its own', async () => {
    const episodes = await toy.run(requestsOf(toyLookup, 200), {
      kind: 'tokens',
      policy: new FakeTokenPolicy(toyLookup),
    });
    expect(episodes.every(({ stop }) => stop === 'final' || stop === 'max-steps')).toBe(true);
  });
});
