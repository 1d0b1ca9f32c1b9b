import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { importEnvironment } from '../../src/env/load.ts';
import { RolloutRunner } from '../../src/env/rollout-runner.ts';
import type { RolloutRequest } from '../../src/env/rollouts.ts';
import { failedEpisode, Transcript } from '../../src/env/transcript.ts';
import { carriedLinks, linksOf } from '../../src/records/hash-chain.ts';
import type { Episode, Segment } from '../../src/records/trajectory.ts';
import { requestOf, requestsOf, TRIAL } from '../fixtures/rollouts.ts';

const request: RolloutRequest = requestOf({ id: 't', prompt: 'p', public: null });

/** An episode with every member that a record can have. */
function whole(): Episode {
  const parent = { ...failedEpisode(requestOf(request.task), 'made', 'cancelled', ''), id: 'parent', seed: 's' };
  const transcript = new Transcript({ ...request, fork: { parent, step: 1 } }, 'made');
  transcript.give([1, 2]);
  const call = {
    id: 'c1',
    name: 'say',
    arguments: { b: 1, a: [{ z: null, y: 'é\ud800' }] },
    raw: '{',
    malformed: 'why',
  };
  const record = { callId: 'c1', tool: 'say', states: ['issued', 'ok'] as const, attempts: 2, observation: 'o' };
  const tokens = transcript.sample({ ids: [3, 4], logprobs: [-0.5, -1.25], version: 7 });
  transcript.step({ text: 'x', calls: [call] }, [{ ...record, error: 'e', retried: ['r'] }], tokens);
  transcript.give([5]);
  transcript.step(
    { text: 'y', calls: [], final: 'f' },
    [],
    transcript.sample({ ids: [6], logprobs: null, version: 7 }),
  );
  transcript.give([8]);
  return transcript.end('sandbox-failure', { detail: 'd', failure: 'hang', final: 'f' });
}

type Path = readonly (string | number)[];

/** Where every value stands that holds no other. */
function leaves(value: unknown, path: Path = []): readonly Path[] {
  if (typeof value !== 'object' || value === null) return [path];
  return Object.entries(value).flatMap(([key, inner]) => leaves(inner, [...path, key]));
}

function changed(episode: Episode, path: Path): Episode {
  const copy = structuredClone(episode) as unknown as Record<string, unknown>;
  const at = path.slice(0, -1).reduce<Record<string, unknown>>((inner, key) => inner[key] as never, copy);
  const last = path.at(-1) as string;
  at[last] = typeof at[last] === 'number' ? at[last] + 1 : `${at[last]}!`;
  return copy as unknown as Episode;
}

test('a chain fits the record that it was made with, also once it has been written and read', () => {
  const episode = whole();
  expect(linksOf(episode)).toEqual(carriedLinks(episode));
  expect(linksOf(JSON.parse(JSON.stringify(episode)) as Episode)).toEqual(carriedLinks(episode));
  expect(new Set(carriedLinks(episode)).size).toBe(3);
});

test('whatever one value of a record is changed to, the chain fits no more, from its step on', () => {
  const episode = whole();
  const paths = leaves(episode).filter((path) => path.at(-1) !== 'hash');
  expect(paths.length).toBeGreaterThan(50);
  for (const path of paths) {
    const [first] = carriedLinks(episode)
      .map((link, i) => (linksOf(changed(episode, path))[i] === link ? -1 : i))
      .filter((i) => i >= 0);
    expect(first, path.join('.')).toBeDefined();
    if (path[0] === 'steps') expect(first, path.join('.')).toBe(Number(path[1]));
  }
});

test('the order of the keys of arguments is no difference, a key more is one', () => {
  const episode = whole();
  const withArguments = (args: object) => {
    const copy = structuredClone(episode) as unknown as { steps: { action: { calls: { arguments: object }[] } }[] };
    copy.steps[0]!.action.calls[0]!.arguments = args;
    return linksOf(copy as unknown as Episode)[0];
  };
  const link = episode.steps[0]!.hash;
  expect(withArguments({ a: [{ y: 'é\ud800', z: null }], b: 1 })).toBe(link);
  expect(withArguments({ a: [{ y: 'é\ud800', z: null }], b: 1, c: null })).not.toBe(link);
  expect(withArguments(JSON.parse('{"a":[{"y":"é\\ud800","z":null}],"b":1,"__proto__":1}'))).not.toBe(link);
  expect(
    withArguments([
      ['a', [{ y: 'é\ud800', z: null }]],
      ['b', 1],
    ]),
  ).not.toBe(link);
});

test('a link is the SHA-256 of the JSON that its module describes', () => {
  const sha = (value: unknown) => createHash('sha256').update(JSON.stringify(value)).digest('hex');
  const episode = failedEpisode(request, 'made', 'cancelled', 'why');
  const { id, group, seed } = request;
  const begun = sha(['isogym.trajectory/2', id, group, 't', 0, 0, seed, 'made', 'p', null]);
  expect(episode.hash).toBe(sha([begun, 'cancelled', 'why', null, null, null, [[], [], [], []]]));
  const [step] = whole().steps;
  const whoseBeginning = sha(['isogym.trajectory/2', id, group, 't', 0, 0, seed, 'made', 'p', ['parent', 1, 's']]);
  expect(step!.hash).toBe(
    sha([
      whoseBeginning,
      0,
      'x',
      null,
      [['c1', 'say', '{"a":[{"y":"é\\ud800","z":null}],"b":1}', '{', 'why']],
      [['c1', 'say', ['issued', 'ok'], 2, 'o', 'e', ['r']]],
      [0, 2, 4],
      [
        [1, 2, 3, 4],
        [0, 0, 1, 1],
        [null, null, -0.5, -1.25],
        [null, null, 7, 7],
      ],
    ]),
  );
});

test('an episode of several segments has one chain', () => {
  const episode = whole();
  const segment: Segment = { ids: [9], actionMask: [1], logprobs: [-1], policyVersion: [0], trainable: true };
  const steps = episode.steps.map((step, i) =>
    i === 0 ? step : { ...step, tokens: { segment: 1, start: 0, end: 1 } },
  );
  const two = { ...episode, steps, segments: [...episode.segments, segment] };
  const other = { ...two, segments: [two.segments[0]!, { ...segment, ids: [10] }] };
  expect(linksOf(two)[0]).toBe(linksOf(other)[0]);
  expect(linksOf(two)[1]).not.toBe(linksOf(other)[1]);
  // The tail and `trainable` of the first, which no step's link covers, and a third one that no step stands in.
  const three = { ...two, segments: [...two.segments, segment] };
  expect(linksOf(three).at(-1)).not.toBe(linksOf(two).at(-1));
  const paths = leaves(three.segments, ['segments']);
  expect(paths.length).toBeGreaterThan(30);
  for (const path of paths)
    expect(linksOf(changed(three, path)).at(-1), path.join('.')).not.toBe(linksOf(three).at(-1));
});

test('episodes of the same task and seed have the same chain, of another seed another', async () => {
  const environment = await importEnvironment(TRIAL);
  const runner = await RolloutRunner.create({ environment: TRIAL, options: {} });
  const requests = requestsOf(environment, 2, 2);
  const spec = { kind: 'scripted', script: 'oracle' } as const;
  const [first, second] = [await runner.run(requests, spec), await runner.run(requests, spec)];
  await runner.close();
  expect(first.map(carriedLinks)).toEqual(second.map(carriedLinks));
  expect(new Set(first.flatMap(carriedLinks)).size).toBe(first.flatMap(carriedLinks).length);
  for (const episode of first) expect(linksOf(episode)).toEqual(carriedLinks(episode));
});
