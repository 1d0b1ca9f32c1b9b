import { beforeAll, describe, expect, it, test } from 'vitest';
import type { Environment } from '../../src/env/environment.ts';
import { importEnvironment } from '../../src/env/load.ts';
import { RolloutPool } from '../../src/env/rollouts/pool.ts';
import { RolloutRunner } from '../../src/env/rollouts/rollout-runner.ts';
import type { PolicySpec, RolloutRequest } from '../../src/env/rollouts/rollouts.ts';
import { carriedLinks, linksOf } from '../../src/records/hash-chain.ts';
import type { Episode } from '../../src/records/trajectory.ts';
import { FakeTokenPolicy, requestsOf } from '../fixtures/rollouts.ts';

const DICE = new URL('../fixtures/dice/index.ts', import.meta.url).href;
const texts = (...all: string[]): PolicySpec => ({ kind: 'texts', texts: all });

let environment: Environment;
let requests: readonly RolloutRequest[];
let parents: readonly Episode[];
let runner: RolloutRunner;
beforeAll(async () => {
  environment = await importEnvironment(DICE);
  runner = await RolloutRunner.create({ environment: DICE, options: {} });
  requests = requestsOf(environment, 6);
  parents = await runner.run(requests, { kind: 'scripted', script: 'endless' });
  return () => runner.close();
});

const forks = (step: number, name = 'fork') =>
  requests.map((request, i) => ({
    ...request,
    id: `${request.id}.${name}`,
    seed: `${request.seed}/${name}`,
    fork: { parent: parents[i]!, step },
  }));
const said = (episode: Episode) => episode.steps.map(({ calls }) => calls.map(({ observation }) => observation));

test('a fork that does what its parent did sees what its parent saw, from any step on', async () => {
  for (const step of [0, 1, 5, 8]) {
    const episodes = await runner.run(forks(step), { kind: 'scripted', script: 'endless' });
    for (const [i, episode] of episodes.entries()) {
      expect(said(episode)).toEqual(said(parents[i]!));
      expect(episode.stop).toBe(parents[i]!.stop);
      expect(episode.forkedFrom).toEqual({ episode: parents[i]!.id, step, seed: parents[i]!.seed });
      expect(linksOf(episode)).toEqual(carriedLinks(episode));
    }
  }
});

test('the parent’s tokens are given, the fork’s own are sampled', async () => {
  const [episode] = await runner.run(forks(3).slice(0, 1), { kind: 'scripted', script: 'endless' });
  const [parent] = parents;
  expect(episode!.segments[0]!.ids).toEqual(parent!.segments[0]!.ids);
  const from = parent!.steps[2]!.tokens.end;
  expect(episode!.segments[0]!.actionMask.slice(0, from)).not.toContain(1);
  expect(episode!.segments[0]!.actionMask.slice(from)).toEqual(parent!.segments[0]!.actionMask.slice(from));
});

describe.each(['thread', 'process'] as const)('isolation: %s:', (isolation) => {
  it('forks are the same bytes, with any kind of policy and number of workers', async () => {
    const specs: readonly (() => PolicySpec)[] = [
      () => ({ kind: 'scripted', script: 'endless' }),
      () => ({ kind: 'uniform' }),
      () => ({ kind: 'tokens', policy: new FakeTokenPolicy(environment) }),
    ];
    for (const workers of [1, 3]) {
      const pool = await RolloutPool.start({ environment: DICE, options: {}, reset: 'isolate', workers, isolation });
      for (const spec of specs) {
        const [expected, found] = [await runner.run(forks(2), spec()), await pool.run(forks(2), spec())];
        expect(JSON.stringify(found)).toBe(JSON.stringify(expected));
      }
      await pool.close();
    }
  }, 60_000);
});

test('a token policy is told the whole context of a fork, which it has never seen', async () => {
  const policy = new FakeTokenPolicy(environment);
  const [fork] = forks(4);
  const [episode] = await runner.run([fork!], { kind: 'tokens', policy });
  const first = policy.batches[0]![0]!;
  const start = episode!.steps[4]!.tokens.start;
  expect(first.newIds).toEqual(episode!.segments[0]!.ids.slice(0, start));
});

test('what if: other actions from a step on, written as a policy could write them', async () => {
  const { text } = parents[0]!.steps[0]!.action;
  const [episode] = await runner.run(forks(2).slice(0, 1), texts(text, 'no action at all'));
  expect(episode!.steps).toHaveLength(4);
  expect(said(episode!).slice(0, 3)).toEqual(said(parents[0]!).slice(0, 3));
  expect(episode!.steps[3]!.calls[0]!.error).toBe('unknown-tool');
  expect(episode).toMatchObject({ stop: 'policy-failure', stopDetail: 'the 2 given texts end here', policy: 'texts' });
});

test('forks of forks, and forks of one step, go on apart from each other', async () => {
  const [parent] = parents;
  const spec: PolicySpec = { kind: 'uniform' };
  const group = Array.from({ length: 4 }, (_, i) => ({ ...forks(3, `g${i}`)[0]!, rollout: i }));
  const episodes = await runner.run(group, spec);
  expect(new Set(episodes.map((episode) => JSON.stringify(episode.segments))).size).toBe(4);
  for (const episode of episodes) expect(said(episode).slice(0, 3)).toEqual(said(parent!).slice(0, 3));
  const [first] = await runner.run(forks(3).slice(0, 1), { kind: 'scripted', script: 'endless' });
  const [second] = await runner.run([{ ...forks(3)[0]!, id: 'second', seed: 'z', fork: { parent: first!, step: 5 } }], {
    kind: 'scripted',
    script: 'endless',
  });
  expect(said(second!)).toEqual(said(parent!));
  expect(second!.forkedFrom!.seed).toBe(parent!.seed);
});

test('a parent of another task, a step that is not there, and one after the end are refused', async () => {
  const run = (fork: RolloutRequest['fork']) => runner.run([{ ...requests[0]!, fork: fork! }], { kind: 'uniform' });
  await expect(run({ parent: parents[1]!, step: 1 })).rejects.toMatchObject({ code: 'FORK_STEP' });
  await expect(run({ parent: parents[0]!, step: 9 })).rejects.toThrow('from 0 to 8 to fork it at, found 9');
  const [ended] = await runner.run(requests.slice(0, 1), texts('roll 1', 'answer 1'));
  await expect(run({ parent: ended!, step: ended!.steps.length })).rejects.toMatchObject({ code: 'FORK_STEP' });
});

test('a record that its world does not come to is no parent', async () => {
  const parent = structuredClone(parents[0]!) as unknown as { steps: { calls: { observation: string }[] }[] };
  parent.steps[1]!.calls[0]!.observation = 'six';
  const [episode] = await runner.run(
    [{ ...requests[0]!, id: 'strayed', fork: { parent: parent as unknown as Episode, step: 2 } }],
    { kind: 'uniform' },
  );
  expect(episode).toMatchObject({ stop: 'environment-failure', steps: [] });
  expect(episode!.stopDetail).toMatch(/did not come to the same in step 2: expected .*"six"/);
});

test('an episode that goes on is played back as it was, with the versions that sampled it', async () => {
  const [parent] = await runner.run(requests.slice(0, 1), {
    kind: 'tokens',
    policy: new FakeTokenPolicy(environment),
  });
  const steps = parent!.steps.slice(0, 2);
  const goingOn = { ...requests[0]!, fork: { parent: { ...parent!, steps }, step: 2, goesOn: true } };
  const [episode] = await runner.run([goingOn], { kind: 'tokens', policy: new FakeTokenPolicy(environment) });
  expect(episode!.steps.length).toBeGreaterThan(2);
  expect(episode!.steps.slice(0, 2)).toEqual(steps);
  const recorded: PolicySpec = { kind: 'recorded', name: 'fake', episodes: [episode!] };
  for (const request of [goingOn, requests[0]!]) {
    const [again] = await runner.run([{ ...request, fresh: true }], recorded);
    expect(JSON.stringify(again)).toBe(JSON.stringify(episode));
  }
});
