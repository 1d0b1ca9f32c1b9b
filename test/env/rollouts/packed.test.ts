import fc from 'fast-check';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { Inside } from '../../../src/env/inside.ts';
import { importEnvironment } from '../../../src/env/load.ts';
import { checkActed } from '../../../src/env/rollouts/issued.ts';
import { packs } from '../../../src/env/rollouts/packed.ts';
import { EpisodePacker } from '../../../src/env/rollouts/packer.ts';
import { RolloutRunner } from '../../../src/env/rollouts/rollout-runner.ts';
import {
  type InsideSpec,
  type RolloutRequest,
  readRequests,
  writeRequests,
} from '../../../src/env/rollouts/rollouts.ts';
import { type Known, unpackEpisodes } from '../../../src/env/rollouts/unpack.ts';
import { MAX_TEXT, readEpisode } from '../../../src/env/rollouts/untrusted.ts';
import { failedEpisode } from '../../../src/env/transcript.ts';
import { generator } from '../../../src/records/random.ts';
import type { Episode } from '../../../src/records/trajectory.ts';
import { stepCount } from '../../../src/records/unread.ts';
import { collectGarbage } from '../../fixtures/garbage.ts';
import { requestOf, requestsOf, TOY_LOOKUP, TRIAL } from '../../fixtures/rollouts.ts';

const bounds = { vocabulary: 488, maxSteps: 10, maxTokens: 4200 };
const random = generator('table');
const table = Float32Array.from({ length: 24 * 4 }, () => 4 * random() - 2);

const TWO_CALLS = '[{"tool":"dice","args":{}},{"tool":"echo","args":{"text":"a"}}]';

function packed(episodes: readonly Episode[]): Uint8Array {
  const packer = new EpisodePacker();
  for (const episode of episodes) packer.add(episode);
  return packer.finish();
}

function textBytes(bytes: Uint8Array): number {
  return new Int32Array(bytes.buffer, 0, 4)[2] as number;
}

async function made(url: string, spec: InsideSpec, requests: readonly RolloutRequest[]) {
  const setup = { environment: url, options: {}, maxSteps: 10 };
  const runner = await RolloutRunner.create(setup);
  const episodes = await runner.act(requests, spec);
  await runner.close();
  const inside = new Inside(await importEnvironment(url), setup);
  const { name, version } = inside.policy(spec, requests);
  const { format, tokenizer } = inside;
  const longest = spec.kind === 'tabular' ? Number.POSITIVE_INFINITY : tokenizer.longest;
  return { episodes, known: { format, name, version, bounds, longest, cancelled: false } satisfies Known };
}

describe('packed episodes come out as they went in', () => {
  it.each<[string, string, InsideSpec]>([
    ['a script', TOY_LOOKUP, { kind: 'scripted', script: 'survey' }],
    ['a uniform policy, with actions that are cut off', TOY_LOOKUP, { kind: 'uniform' }],
    [
      'a tabular policy, with logprobs',
      TOY_LOOKUP,
      { kind: 'tabular', table, version: 7, temperature: 1, greedy: false },
    ],
    ['a greedy one, without', TOY_LOOKUP, { kind: 'tabular', table, version: 7, temperature: 1, greedy: true }],
    ['text of every kind', TRIAL, { kind: 'scripted', script: 'confess' }],
    ['failures', TRIAL, { kind: 'scripted', script: 'endless' }],
  ])('%s', async (_, url, spec) => {
    const environment = await importEnvironment(url);
    const odd = requestOf({ id: 't', prompt: '你好 😀 \u2028 \0 \ud800', public: {} });
    const requests = [...requestsOf(environment, 20, 2), ...(url === TRIAL ? [odd] : [])];
    const { episodes, known } = await made(url, spec, requests);
    const out = unpackEpisodes(packed(episodes), requests, known);
    expect(out.map(stepCount)).toEqual(episodes.map(({ steps }) => steps.length));
    expect(JSON.stringify(out)).toBe(JSON.stringify(episodes));
    expect(packs(spec, requests)).toBe(true);
  });
});

it('requests come out as they went in, and what is held does not', () => {
  const task = { id: 't', prompt: '"\ud800', public: { a: [1, '\u2028'] } };
  const requests = [requestOf(task), requestOf(task, 1)];
  expect(readRequests(writeRequests(requests))).toEqual(requests);
  const held = requestOf({ ...task, public: 3, held: 'the answer' } as never);
  expect(writeRequests([held])).not.toContain('the answer');
  expect(readRequests(writeRequests([held]))[0]?.task).toEqual({ ...task, public: 3 });
  const whole = {
    ...requestOf(task),
    fresh: true,
    fork: { parent: failedEpisode(requestOf(task), 'p', 'cancelled', ''), step: 0 },
  };
  expect(readRequests(writeRequests([whole]))).toEqual([whole]);
});

describe.each<[string, string, number, InsideSpec]>([
  ['in the compact format', TOY_LOOKUP, 2000, { kind: 'tabular', table, version: 7, temperature: 1, greedy: false }],
  [
    'in the JSON format',
    TRIAL,
    // Its prompt is long.
    300,
    { kind: 'texts', texts: [TWO_CALLS, '{"tool":"flaky_read","args":{}}', '{"final":"ok"}'] },
  ],
])('what a host could have changed, %s,', (_, url, numRuns, spec) => {
  let requests: readonly RolloutRequest[];
  let bytes: Uint8Array;
  let known: Known;

  beforeAll(async () => {
    requests = requestsOf(await importEnvironment(url), 2);
    const result = await made(url, spec, requests);
    bytes = packed(result.episodes);
    known = result.known;
  });

  it('is refused, or reads as an episode in which all is within its bounds', () => {
    let refused = 0;
    let read = 0;
    const lie = fc.oneof(
      fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
      fc.integer({ min: -40, max: 40 }),
      fc.constantFrom(...'[]{}",:\\0n'),
    );
    fc.assert(
      fc.property(fc.nat(), lie, (at, value) => {
        const changed = bytes.slice();
        if (typeof value === 'number') new Int32Array(changed.buffer).set([value], at % (changed.length >> 2));
        else changed[changed.length - 1 - (at % textBytes(bytes))] = value.charCodeAt(0);
        let episodes: readonly Episode[];
        try {
          episodes = unpackEpisodes(changed, requests, known);
        } catch (error) {
          refused++;
          expect(error).toMatchObject({ code: 'UNTRUSTED' });
          return;
        }
        // Of what was taken, nothing fails when it is read in the end.
        read++;
        for (const [i, episode] of episodes.entries()) {
          checkActed(episode, known.version, false);
          for (const logprob of episode.segments[0]?.logprobs ?? []) expect(logprob ?? 0).toBeLessThanOrEqual(0);
          // The other reader, which knows nothing of this layout, and finds no other number of steps.
          expect(readEpisode(JSON.parse(JSON.stringify(episode)), requests[i]!, known.name, bounds)).toEqual(episode);
          expect(stepCount(episode)).toBe(episode.steps.length);
        }
      }),
      { numRuns, seed: 1 },
    );
    expect(refused).toBeGreaterThan(50);
    expect(read).toBeGreaterThan(50);
  });

  it('is refused where it is cut, or goes on after its end', () => {
    for (const length of [0, 8, 16, 100, bytes.length - 4]) {
      expect(() => unpackEpisodes(bytes.slice(0, length), requests, known)).toThrow('sandbox host');
    }
    const longer = new Uint8Array(bytes.length + 4);
    longer.set(bytes);
    expect(() => unpackEpisodes(longer, requests, known)).toThrow('sandbox host');
    expect(() => unpackEpisodes(bytes, requests.slice(1), known)).toThrow('nothing after the last episode');
  });
});

describe('a record that is kept', () => {
  let requests: readonly RolloutRequest[];
  let episode: Episode;
  let known: Known;
  beforeAll(async () => {
    requests = requestsOf(await importEnvironment(TOY_LOOKUP), 2);
    const result = await made(TOY_LOOKUP, { kind: 'texts', texts: ['answer 1'] }, requests);
    const [answered] = result.episodes;
    // V8 copies what is shorter than 13.
    const final = 'fourteen chars';
    const action = { text: `answer ${final}`, calls: [], final };
    episode = { ...answered!, final, steps: [{ ...answered!.steps[0]!, action }] };
    known = result.known;
  });
  /** The first of a chunk whose second has a text of 512 KiB, which V8 keeps in its heap. */
  const first = (bytes: Uint8Array) => unpackEpisodes(bytes, requests, known)[0]!;
  const chunk = (own: Episode) => packed([own, { ...own, stopDetail: 'x'.repeat(2 ** 19) }]);

  it('keeps nothing of the chunk that it came in, once it is read', async () => {
    const come = () => {
      const bytes = chunk(episode);
      return { record: first(bytes), chunkOf: new WeakRef(bytes.buffer) };
    };
    const { record, chunkOf } = come();
    expect(record.steps).toHaveLength(1);
    await collectGarbage();
    expect(chunkOf.deref()).toBeUndefined();
    expect(record).toEqual(episode);
  });

  it('keeps none of the texts of the others, by its steps as little as by its end', async () => {
    await collectGarbage();
    const before = process.memoryUsage().heapUsed;
    const kept = Array.from({ length: 32 }, () => {
      const { hash, final, stopDetail, steps } = first(chunk({ ...episode, stopDetail: 'the end of it all' }));
      return { hash, final, stopDetail, steps };
    });
    await collectGarbage();
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(4 * 2 ** 20);
    expect(kept[31]!.steps).toEqual(episode.steps);
    expect(kept[31]).toMatchObject({ final: episode.final, stopDetail: 'the end of it all', hash: episode.hash });
  });
});

describe('what is too much is refused before it is read:', () => {
  let requests: readonly RolloutRequest[];
  let episode: Episode;
  let known: Known;
  beforeAll(async () => {
    requests = requestsOf(await importEnvironment(TRIAL), 1);
    const result = await made(TRIAL, { kind: 'texts', texts: ['{"tool":"flaky_read","args":{}}'] }, requests);
    episode = result.episodes[0]!;
    known = result.known;
  });
  const withStep = (step: object): Episode => ({ ...episode, steps: [{ ...episode.steps[0]!, ...step }] });
  const record = (change: object) => withStep({ calls: [{ ...episode.steps[0]!.calls[0], ...change }] });

  it.each<[string, (text: string) => Episode]>([
    ['an action', (text) => withStep({ action: { text, calls: [] } })],
    ['an observation', (observation) => record({ observation })],
    ['an error', (error) => record({ error })],
    ['why it was retried', (why) => record({ retried: [why] })],
    ['a detail', (stopDetail) => ({ ...episode, stopDetail })],
  ])('%s longer than any text may be', (_, lie) => {
    const own = { ...known, longest: Number.POSITIVE_INFINITY };
    const of = (length: number) => unpackEpisodes(packed([lie('x'.repeat(length))]), requests, own);
    expect(of(MAX_TEXT)).toHaveLength(1);
    expect(() => of(MAX_TEXT + 1)).toThrow('a text from');
  });

  it('an action longer than its tokens can be, a million calls in it', () => {
    const outline = vi.fn(known.format.outline);
    const own = { ...known, format: { ...known.format, outline } };
    const text = `[{}${',{}'.repeat(1_000_000)}]`;
    const lie = withStep({ action: { text, calls: [] } });
    expect(() => unpackEpisodes(packed([lie]), requests, own)).toThrow('a text of its tokens');
    expect(outline).not.toHaveBeenCalled();
  });

  it('more calls than there are records for, whatever the text says', () => {
    const outline = vi.fn(known.format.outline);
    const read = (calls: unknown) =>
      unpackEpisodes(packed([withStep({ calls })]), requests, { ...known, format: { ...known.format, outline } });
    expect(() => read({ length: 1000, [Symbol.iterator]: () => [].values() })).toThrow('one record for each call');
    expect(outline).not.toHaveBeenCalled();
    expect(read(episode.steps[0]!.calls)).toEqual([episode]);
  });
});
