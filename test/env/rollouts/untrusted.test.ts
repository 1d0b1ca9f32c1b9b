import { beforeAll, expect, it } from 'vitest';
import { importEnvironment } from '../../../src/env/load.ts';
import { RolloutRunner } from '../../../src/env/rollouts/rollout-runner.ts';
import type { RolloutRequest } from '../../../src/env/rollouts/rollouts.ts';
import { readEpisode, readEpisodes, readTokenRequest } from '../../../src/env/rollouts/untrusted.ts';
import type { Episode } from '../../../src/records/trajectory.ts';
import { requestsOf, TRIAL } from '../../fixtures/rollouts.ts';

const bounds = { vocabulary: 300, maxSteps: 8, maxTokens: 4096 };
let request: RolloutRequest;
let episode: Episode;

beforeAll(async () => {
  const environment = await importEnvironment(TRIAL);
  const runner = await RolloutRunner.create({ environment: TRIAL, options: {} });
  request = requestsOf(environment, 1)[0]!;
  episode = (await runner.run([request], { kind: 'scripted', script: 'oracle' }))[0]!;
  await runner.close();
});

type Loose = { [key: string]: unknown } & unknown[];
/** A deep copy with one place changed, e.g. `steps.0.calls.0.observation`. */
function changed(path: string, value: unknown): unknown {
  const copy = structuredClone(episode) as unknown as Loose;
  const keys = path.split('.');
  const last = keys.pop() as string;
  const at = keys.reduce<Loose>((inner, key) => inner[key] as Loose, copy);
  if (value === undefined) delete at[last];
  else at[last] = value;
  return copy;
}
const read = (value: unknown) => readEpisode(value, request, 'scripted:oracle', bounds);

it('an episode as a host of ours sends it is taken as it is', () => {
  expect(read(JSON.parse(JSON.stringify(episode)))).toEqual(episode);
});

const NESTED = JSON.parse('['.repeat(100_000) + ']'.repeat(100_000)) as unknown;

it.each([
  ['another format', 'format', 'isogym.trajectory/0'],
  ['another id', 'id', 'someone-else'],
  ['another group', 'group', 'g'],
  ['another task', 'taskId', 't'],
  ['another seed', 'seed', 's'],
  ['another policy', 'policy', 'scripted:other'],
  ['another prompt', 'prompt', 'p'],
  ['another rollout', 'rollout', 1],
  ['a stop reason of its own', 'stop', 'victory'],
  ['a stop reason from a prototype', 'stop', 'toString'],
  ['a failure where there was none', 'failure', 'hang'],
  ['a failure that is no kind of one', 'failure', NESTED],
  ['a sandbox failure without a kind', 'stop', 'sandbox-failure'],
  ['no final answer where it stopped with one', 'final', null],
  ['a final answer that is no text', 'final', 1],
  ['a member too many', 'return', 1],
  ['no steps', 'steps', undefined],
  ['steps that are no array', 'steps', { length: 2 }],
  ['too many steps', 'steps', Array(9).fill({})],
  ['a step out of order', 'steps.0.index', 1],
  ['an action that is no text', 'steps.0.action.text', ['x']],
  ['a call without a record', 'steps.0.calls', []],
  ['a record of another call', 'steps.0.calls.0.callId', 'call-9'],
  ['arguments that are a text', 'steps.0.action.calls.0.arguments', 'x'],
  ['arguments that nest too deep', 'steps.0.action.calls.0.arguments', { deep: NESTED }],
  ['a fork that nests too deep', 'forkedFrom', NESTED],
  ['an observation that is no text', 'steps.0.calls.0.observation', {}],
  ['a state of its own', 'steps.0.calls.0.states', ['won']],
  ['attempts without number', 'steps.0.calls.0.attempts', 'many'],
  ['a step before its own start', 'steps.0.tokens.start', 1e9],
  ['a range of tokens with a member too many', 'steps.0.tokens.more', NESTED],
  ['a segment that is not there', 'steps.0.tokens.segment', 7],
  ['an id that is no token', 'segments.0.ids.0', 300],
  ['an id below zero', 'segments.0.ids.0', -1],
  ['half an id', 'segments.0.ids.0', 0.5],
  ['a mask of 2', 'segments.0.actionMask.0', 2],
  ['a mask too short', 'segments.0.actionMask', [1]],
  ['a logprob that is a text', 'segments.0.logprobs.0', '-1'],
  ['a version that is no number', 'segments.0.policyVersion.0', true],
  ['trainable: yes', 'segments.0.trainable', 'yes'],
  ['two segments', 'segments', [{}, {}]],
  ['no last link', 'hash', undefined],
  ['a link that is no hash', 'steps.0.hash', 'A'.repeat(64)],
  ['a link that is a list of one', 'steps.0.hash', ['a'.repeat(64)]],
])('an episode with %s is refused', (_, path, value) => {
  expect(() => read(changed(path, value))).toThrow('a sandbox host sent something else than');
});

it('what is no list of as many episodes is refused', () => {
  for (const value of [null, {}, 'x', [], [episode, episode]]) {
    expect(() => readEpisodes(value, [request], 'scripted:oracle', bounds)).toThrow();
  }
  expect(readEpisodes([episode], [request], 'scripted:oracle', bounds)).toEqual([episode]);
});

it('a request for tokens is one of an episode that was asked for, with ids and a bound', () => {
  const ask = { episodeId: 'a', newIds: [1, 2], maxTokens: 5, seed: 's' };
  const known = new Set(['a']);
  expect(readTokenRequest(ask, known, bounds)).toEqual(ask);
  for (const wrong of [
    { ...ask, episodeId: 'b' },
    { ...ask, newIds: [300] },
    { ...ask, newIds: 'x' },
    { ...ask, maxTokens: 1e9 },
    { ...ask, maxTokens: 0 },
    { ...ask, seed: 5 },
    { ...ask, more: 1 },
  ]) {
    expect(() => readTokenRequest(wrong, known, bounds)).toThrow('a sandbox host sent something else than');
  }
});
