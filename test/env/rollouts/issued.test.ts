import { Piscina } from 'piscina';
import { afterEach, beforeAll, describe, expect, it, test, vi } from 'vitest';
import type { Environment } from '../../../src/env/environment.ts';
import { Inside } from '../../../src/env/inside.ts';
import { importEnvironment } from '../../../src/env/load.ts';
import { Conversation } from '../../../src/env/rollouts/conversation.ts';
import { checkActed } from '../../../src/env/rollouts/issued.ts';
import { RolloutPool } from '../../../src/env/rollouts/pool.ts';
import { RolloutRunner } from '../../../src/env/rollouts/rollout-runner.ts';
import type { PolicySpec, RolloutRequest, TokenSpec } from '../../../src/env/rollouts/rollouts.ts';
import { converseOver } from '../../../src/env/rollouts/talk.ts';
import type { FromWorker, ToWorker } from '../../../src/env/rollouts/work.ts';
import { replyInTokens } from '../../../src/policy/reply.ts';
import { generator } from '../../../src/records/random.ts';
import type { Episode } from '../../../src/records/trajectory.ts';
import { FakeTokenPolicy, requestsOf, TOY_LOOKUP } from '../../fixtures/rollouts.ts';

const DICE = new URL('../../fixtures/dice/index.ts', import.meta.url).href;

type Loose = { [key: string]: unknown } & unknown[];
/** A deep copy with places changed, e.g. `segments.0.ids.3`. */
function changed(episode: Episode, changes: Readonly<Record<string, unknown>>): Episode {
  const copy = structuredClone(episode) as unknown as Loose;
  for (const [path, value] of Object.entries(changes)) {
    const keys = path.split('.');
    const last = keys.pop() as string;
    keys.reduce<Loose>((inner, key) => inner[key] as Loose, copy)[last] = value;
  }
  return copy as unknown as Episode;
}

let environment: Environment;
let inside: Inside;
let runner: RolloutRunner;
let requests: readonly RolloutRequest[];
beforeAll(async () => {
  environment = await importEnvironment(DICE);
  inside = new Inside(environment, {});
  requests = requestsOf(environment, 4);
  runner = await RolloutRunner.create({ environment: DICE, options: {} });
  return () => runner.close();
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** A worker whose episodes are real, and which sends `lie` of the second. */
async function talkedWith(
  own: readonly RolloutRequest[],
  lie: (episode: Episode) => Episode = (episode) => episode,
  schedule: TokenSpec['schedule'] = { live: 512 },
): Promise<readonly Episode[]> {
  const policy = new FakeTokenPolicy(environment);
  const conversation = new Conversation(
    { kind: 'tokens', policy, schedule },
    own,
    async (port) => {
      const post = (messages: FromWorker) =>
        port.postMessage(
          messages.map((message) =>
            'ended' in message && message.ended.id === own[1]!.id ? { ended: lie(message.ended) } : message,
          ),
        );
      const heard = (listener: (messages: ToWorker) => void) => port.on('message', listener);
      const { name, version } = policy;
      await converseOver({ post, heard }, runner, { name, version }, { aborted: false });
      port.close();
      return undefined;
    },
    {
      cancelled: () => false,
      read: (reply, steps) => replyInTokens(reply, steps, inside.tokenizer, inside.format).action,
      notice: () => {},
    },
  );
  await conversation.run(1);
  return own.map(({ id }) => conversation.episode(id));
}

const CALL = { id: 'call-9', name: 'roll', arguments: {}, raw: '' };
const first = (episode: Episode) => episode.steps[0]!.tokens.start;
describe('of what an asking episode holds, all that was answered is held against the answers:', () => {
  it.each<[string, (episode: Episode) => Readonly<Record<string, unknown>>]>([
    ['another token', (e) => ({ [`segments.0.ids.${first(e)}`]: (e.segments[0]!.ids[first(e)]! + 1) % 200 })],
    ['a given token that it did not ask with', () => ({ 'segments.0.ids.0': 1 })],
    ['a better logprob', (e) => ({ [`segments.0.logprobs.${first(e)}`]: -1e-9 })],
    ['a positive logprob', (e) => ({ [`segments.0.logprobs.${first(e)}`]: 3 })],
    ['no logprob where one was sampled', (e) => ({ [`segments.0.logprobs.${first(e)}`]: null })],
    ['another version', (e) => ({ [`segments.0.policyVersion.${first(e)}`]: 4 })],
    ['a given token as sampled', () => ({ 'segments.0.actionMask.0': 1 })],
    ['a logprob of a given token', () => ({ 'segments.0.logprobs.0': -1 })],
    ['a sampled token as given', (e) => ({ [`segments.0.actionMask.${first(e)}`]: 0 })],
    ['not trainable', () => ({ 'segments.0.trainable': false })],
    ['tokens that no step claims', (e) => ({ 'steps.0.tokens.start': first(e) + 1 })],
    ['another text', () => ({ 'steps.0.action.text': 'answer 1' })],
    ['another answer', (e) => ({ final: `${e.final}1` })],
    [
      'another answer, in its action as well',
      (e) => ({ final: '1', [`steps.${e.steps.length - 1}.action.final`]: '1' }),
    ],
    ['an action of other calls', (e) => ({ 'steps.0.action.calls': [...e.steps[0]!.action.calls, CALL] })],
    ['a step fewer', (e) => ({ steps: e.steps.slice(0, -1) })],
    ['no steps and no tokens, and yet an end that is judged', () => ({ steps: [], segments: [] })],
    ['an end that it was not told: straggler', () => ({ stop: 'straggler', final: null })],
    ['an end that it was not told: suspended', () => ({ stop: 'suspended', final: null })],
    ['an end that it was not told: deadline', () => ({ stop: 'deadline', final: null })],
    ['an end that it was not told: late', () => ({ stop: 'late', final: null })],
    ['cancelled, in a run that is not', () => ({ stop: 'cancelled', final: null })],
  ])('%s is refused, and its siblings stay as they are', async (_, lie) => {
    const honest = await talkedWith(requests);
    expect(honest[1]!.steps.length).toBeGreaterThan(0);
    const found = await talkedWith(requests, (episode) => changed(episode, lie(episode)));
    expect(found[1]).toMatchObject({ stop: 'sandbox-failure', failure: 'untrusted', steps: [], segments: [] });
    for (const i of [0, 2, 3]) expect(found[i]).toEqual(honest[i]);
  });

  it('one that was told to stop says so, in those words, or is refused', async () => {
    const schedule = { live: 512, deadline: 3 };
    const honest = await talkedWith(requests, undefined, schedule);
    expect(honest[1]!.stop).toBe('deadline');
    for (const lie of [{ stop: 'max-steps' }, { stop: 'straggler' }, { stopDetail: 'in other words' }]) {
      const found = await talkedWith(requests, (episode) => changed(episode, lie), schedule);
      expect(found[1]).toMatchObject({ stop: 'sandbox-failure', failure: 'untrusted' });
    }
  });

  it('one that goes on is held to what it was suspended with; a fork has sampled nothing of its parent', async () => {
    const parents = await talkedWith(requests);
    for (const goesOn of [true, false]) {
      const own = requests.map((request, i) => ({
        ...request,
        fork: { parent: { ...parents[i]!, steps: parents[i]!.steps.slice(0, 1) }, step: 1, goesOn },
      }));
      const of = async (lie?: Readonly<Record<string, unknown>>) =>
        (await talkedWith(own, (episode) => changed(episode, lie ?? {})))[1]!;
      const honest = await of();
      expect(honest.stop).not.toBe('sandbox-failure');
      const at = first(parents[1]!);
      const lies = goesOn
        ? [
            { [`segments.0.logprobs.${at}`]: -9 },
            { [`segments.0.policyVersion.${at}`]: 2 },
            { 'steps.0.tokens.end': at },
          ]
        : [
            { [`segments.0.actionMask.${at}`]: 1 },
            { [`segments.0.logprobs.${at}`]: -9 },
            { 'steps.0.tokens.start': 0 },
          ];
      for (const lie of lies) expect(await of(lie)).toMatchObject({ stop: 'sandbox-failure', failure: 'untrusted' });
    }
  });
});

describe('of a policy that acts beside the world', () => {
  it.each<[string, (episode: Episode) => Readonly<Record<string, unknown>>]>([
    ['a positive logprob', (e) => ({ [`segments.0.logprobs.${first(e)}`]: 1e-9 })],
    ['a logprob of minus infinity', (e) => ({ [`segments.0.logprobs.${first(e)}`]: Number.NEGATIVE_INFINITY })],
    ['no logprob in what can be trained on', (e) => ({ [`segments.0.logprobs.${first(e)}`]: null })],
    ['another version', (e) => ({ [`segments.0.policyVersion.${first(e)}`]: 1 })],
    ['no version', (e) => ({ [`segments.0.policyVersion.${first(e)}`]: null })],
    ['a sampled token that no step claims', () => ({ 'segments.0.actionMask.0': 1 })],
    ['a step that claims what was given', () => ({ 'steps.0.tokens.start': 0 })],
    ['steps that claim the same', (e) => ({ 'steps.1.tokens.start': first(e) })],
    ['a version of what was given', () => ({ 'segments.0.policyVersion.0': 0 })],
    ['a deadline', () => ({ stop: 'deadline' })],
    ['a straggler', () => ({ stop: 'straggler' })],
    ['cancelled', () => ({ stop: 'cancelled' })],
  ])('%s is refused', async (_, lie) => {
    const all = await runner.run(requests, { kind: 'uniform' });
    const episode = all.find(({ steps }) => steps.length > 1)!;
    expect(() => checkActed(episode, 0, false)).not.toThrow();
    expect(() => checkActed(changed(episode, lie(episode)), 0, false)).toThrow(
      'a sandbox host sent something else than',
    );
  });
});

test('a worker that packs a positive logprob costs that episode, and no other', async () => {
  const toy = await importEnvironment(TOY_LOOKUP);
  const random = generator('table');
  const table = Float32Array.from({ length: 24 * 4 }, () => 4 * random() - 2);
  const spec = { kind: 'tabular', table, version: 7, temperature: 1, greedy: false } as const;
  const own = requestsOf(toy, 4);
  const pool = await RolloutPool.start({ environment: TOY_LOOKUP, options: {}, workers: 1, isolation: 'thread' });
  const honest = await pool.run(own, spec);
  const run = Piscina.prototype.run;
  vi.spyOn(Piscina.prototype, 'run').mockImplementation(async function (this: Piscina, task, options) {
    const answer = await run.call(this, task, options);
    const { packed } = answer as { readonly packed: Uint8Array };
    // The first logprob: of the first request, which is there alone too.
    if (task.requests.includes(own[0]!.id)) new Float64Array(packed.buffer, 16, 1)[0] = 5;
    return answer;
  });
  const found = await pool.run(own, spec);
  vi.restoreAllMocks();
  await pool.close();
  expect(found[0]).toMatchObject({ stop: 'sandbox-failure', failure: 'untrusted' });
  expect(found.slice(1)).toEqual(honest.slice(1));
});

test.each<[string, PolicySpec, boolean]>([
  ['packed', { kind: 'uniform' }, false],
  ['as records', { kind: 'texts', texts: ['roll', 'answer 1'] }, true],
])('what was asked for %s is not taken in the other form', async (_, spec, packed) => {
  const pool = await RolloutPool.start({ environment: DICE, options: {}, workers: 1, isolation: 'thread' });
  const run = Piscina.prototype.run;
  vi.spyOn(Piscina.prototype, 'run').mockImplementation(function (this: Piscina, task, options) {
    if (task.kind === 'act') expect(task.packed).toBe(!packed);
    return run.call(this, { ...task, packed }, options);
  });
  const found = await pool.run(requests, spec);
  vi.restoreAllMocks();
  await pool.close();
  for (const episode of found) {
    expect(episode).toMatchObject({
      stop: 'sandbox-failure',
      failure: 'untrusted',
      stopDetail: expect.stringContaining('the form that was asked for'),
      steps: [],
    });
  }
});
