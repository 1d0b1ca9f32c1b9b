import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { importEnvironment } from '../../src/env/load.ts';
import { RolloutRunner } from '../../src/env/rollouts/rollout-runner.ts';
import type { RolloutRequest } from '../../src/env/rollouts/rollouts.ts';
import { failedEpisode, Transcript } from '../../src/env/transcript.ts';
import { carriedLinks, linksOf, stepLink } from '../../src/records/hash-chain.ts';
import type { Json } from '../../src/records/json.ts';
import { LinkBytes } from '../../src/records/link-bytes.ts';
import { type Episode, type Segment, TRAJECTORY_FORMAT } from '../../src/records/trajectory.ts';
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
  const tokens = transcript.sample({ ids: [3, 4], logprobs: [-0.5, -1.25] }, 7);
  transcript.step({ text: 'x', calls: [call] }, [{ ...record, error: 'e', retried: ['r'] }], tokens);
  transcript.give([5]);
  transcript.step({ text: 'y', calls: [], final: 'f' }, [], transcript.sample({ ids: [6], logprobs: null }, 7));
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

/** The same bytes as `LinkBytes` writes, the slow and obvious way. */
const slow = {
  integer(value: number): number[] {
    return value < 128 ? [value] : [128 + (value % 128), ...slow.integer(Math.floor(value / 128))];
  },
  number(value: number | null): number[] {
    if (value === null) return [0];
    if (Number.isSafeInteger(value) && value >= 0) return [1, ...slow.integer(value)];
    return [2, ...new Uint8Array(Float64Array.of(value).buffer)];
  },
  text(value: string | null): number[] {
    if (value === null) return [0];
    const units = value.split('').map((unit) => unit.charCodeAt(0));
    if (units.every((unit) => unit < 256)) return [...slow.integer(2 + 2 * units.length), ...units];
    return [...slow.integer(3 + 2 * units.length), ...units.flatMap((unit) => [unit % 256, unit >> 8])];
  },
  link(...values: readonly (readonly number[])[]): string {
    return createHash('sha256').update(Uint8Array.from(values.flat())).digest('hex');
  },
};

function ascii(link: string): number[] {
  return link.split('').map((digit) => digit.charCodeAt(0));
}

test('a link is the SHA-256 of the bytes that its module describes', () => {
  const { integer, number, text, link } = slow;
  const episode = failedEpisode(request, 'made', 'cancelled', 'why');
  const { id, group, seed } = request;
  const known = [
    text(TRAJECTORY_FORMAT),
    text(id),
    text(group),
    text('t'),
    [0, 0],
    text(seed),
    text('made'),
    text('p'),
  ];
  const untouched = [number(null), [0, 0, 0, 0], [0]];
  expect(episode.hash).toBe(
    link(...known, [0, 0, 0], text('cancelled'), text('why'), text(null), text(null), ...untouched),
  );

  const [step, second] = whole().steps;
  const argument = [
    7,
    2,
    ...text('a'),
    6,
    1,
    7,
    2,
    ...text('y'),
    3,
    ...text('é\ud800'),
    ...text('z'),
    0,
    ...text('b'),
    1,
    1,
  ];
  expect(step!.hash).toBe(
    link(
      ...[...known, text('parent'), number(1), text('s'), integer(0), text('x'), text(null)],
      ...[integer(1), text('c1'), text('say'), text('{'), argument, text('why')],
      // Call and tool are those of the call: 1 each. States 1 and 3.
      ...[integer(1), [1], [1], [1, 3, 0], integer(2), text('o'), text('e'), number(1), text('r')],
      ...[integer(0), integer(2), integer(4), integer(4)],
      ...[integer(1), [0], integer(2), [0]],
      ...[integer(3), [1, 1], number(-0.5), number(7)],
      ...[integer(4), [1, 1], number(-1.25), number(7)],
    ),
  );
  expect(second!.hash).toBe(
    link(
      ...[ascii(step!.hash), integer(1), text('y'), text('f'), [0], [0], [0, 5, 6, 2]],
      ...[integer(5), [0], integer(6), [1, 1], number(null), number(7)],
    ),
  );
});

test('every value is written as it is described, whatever it is', () => {
  const bytes = new LinkBytes();
  const unit = fc.oneof(fc.nat({ max: 0x7f }), fc.nat({ max: 0xff }), fc.nat({ max: 0xffff }));
  const short = fc.array(unit, { maxLength: 40 }).map((units) => String.fromCharCode(...units));
  const text = fc.oneof(
    short,
    fc.tuple(short, fc.nat({ max: 9000 })).map(([one, times]) => one.repeat(times % 300)),
  );
  const integer = fc.oneof(fc.nat({ max: 300 }), fc.nat({ max: 20_000 }), fc.maxSafeNat());
  const value = fc.oneof(
    fc.record({ kind: fc.constant('text' as const), value: fc.option(text) }),
    fc.record({ kind: fc.constant('integer' as const), value: integer }),
    fc.record({
      kind: fc.constant('number' as const),
      value: fc.option(fc.oneof(integer, fc.double({ noNaN: true }))),
    }),
  );
  fc.assert(
    fc.property(fc.array(value, { maxLength: 30 }), (values) => {
      bytes.start('');
      for (const one of values) bytes[one.kind](one.value as never);
      expect(bytes.digest()).toBe(slow.link(...values.map((one) => slow[one.kind](one.value as never))));
    }),
    { numRuns: 500, seed: 1 },
  );
});

test('two steps have one link where they are the same step, and nowhere else', () => {
  // Few and short values, so that texts which run into each other, and values of another kind in a place, do come up.
  const text = fc.constantFrom('', '1', '2', 'a', 'aa', '\0', '\u0100', '\ud800');
  const odd = fc.constantFrom('', '1', 0, 1, 2, 128, -1, 0.5, null, true);
  const json = fc.oneof(odd, fc.array(odd, { maxLength: 2 }), fc.dictionary(text, odd, { maxKeys: 2 }));
  const maybe = fc.option(text, { nil: undefined });
  // In place of a list or of an object, often.
  const or = (kind: fc.Arbitrary<unknown>) =>
    fc.oneof(kind, kind, fc.constantFrom<unknown>('', 'a', 'aa', 2, null, true));
  const call = fc.record({
    id: text,
    name: text,
    arguments: fc.option(fc.dictionary(text, json, { maxKeys: 2 })),
    raw: text,
    malformed: maybe,
  });
  const record = fc.record({
    callId: text,
    tool: text,
    states: or(fc.array(fc.constantFrom<unknown>('issued', 'ok', 'lost', 0, 1, 3, null), { maxLength: 2 })),
    attempts: odd,
    observation: text,
    error: maybe,
    retried: or(fc.option(fc.array(text, { maxLength: 2 }), { nil: undefined })).map((value) => value ?? undefined),
  });
  const step = fc.record({
    index: odd,
    action: or(fc.record({ text, final: maybe, calls: or(fc.array(or(call), { maxLength: 2 })) })),
    calls: or(fc.array(or(record), { maxLength: 2 })),
    tokens: or(fc.record({ segment: odd, start: odd, end: fc.constantFrom<unknown>(1, '1', null) })),
  });
  const segment = fc.record({
    ids: or(fc.tuple(odd)),
    actionMask: or(fc.tuple(odd)),
    logprobs: or(fc.tuple(odd)),
    policyVersion: or(fc.tuple(odd)),
    trainable: fc.constant(true),
  });
  const canonical = (value: unknown): string =>
    JSON.stringify(value, (_, inner) =>
      typeof inner === 'object' && inner !== null && !Array.isArray(inner)
        ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
        : inner,
    );
  const whose = new Map<string, string>();
  fc.assert(
    fc.property(step, segment, (one, tokens) => {
      const { trainable: _, ...covered } = tokens;
      const written = canonical([one, covered]);
      const link = stepLink('0'.repeat(64), one as never, tokens as never, 0);
      expect(whose.get(link) ?? written).toBe(written);
      whose.set(link, written);
    }),
    { numRuns: 5000, seed: 1 },
  );
  expect(whose.size).toBe(new Set(whose.values()).size);
});

test('records with something else in place of a list, an object or a state have links of their own', () => {
  const episode = whole();
  const last = (path: Path, value: unknown) => {
    const copy = structuredClone(episode) as unknown as Record<string, unknown>;
    const at = path.slice(0, -1).reduce<Record<string, unknown>>((inner, key) => inner[key] as never, copy);
    at[path.at(-1) as string] = value;
    return linksOf(copy as unknown as Episode).at(-1);
  };
  const call = ['steps', 0, 'calls', 0];
  const values: readonly (readonly [Path, readonly unknown[]])[] = [
    [
      [...call, 'states'],
      [['issued', 'ok'], [1, 3], [1, 'ok'], ['issued'], ['issued', 0], ['a', 'b'], 'ab', 'a', ['a'], {}, null],
    ],
    [
      [...call, 'retried'],
      [['a', 'b'], 'ab', ['ab'], {}, { length: 0 }, [], null],
    ],
    [
      ['steps', 0, 'action', 'calls'],
      [[], '', 'a', ['a'], [{}], [{ id: 'a' }], [null], [[]], {}, null, 0, 1],
    ],
    [
      ['steps', 0, 'calls'],
      [[], '', 'a', ['a'], [{}], [null], [[]], {}, null, 0, 1],
    ],
    [
      ['steps', 0, 'tokens', 'end'],
      [4, '4', null, 4.5, -1],
    ],
    [['forkedFrom'], [undefined, {}, 'ab', [], 1, { episode: 1 }, { episode: 'a' }, { step: 1 }]],
    [
      ['segments', 0],
      [null, {}, [], 'ab', { ...episode.segments[0]!, trainable: null }],
    ],
    [
      ['segments', 0, 'ids'],
      [[], '12', ['1', '2'], [1, 2], null, {}],
    ],
    [
      ['segments', 0, 'actionMask'],
      [[], '12345678', [...episode.segments[0]!.actionMask, 0], [...episode.segments[0]!.actionMask, 1]],
    ],
  ];
  for (const [path, all] of values) {
    const links = all.map((value) => last(path, value));
    expect(new Set(links).size, path.join('.')).toBe(all.length);
  }
});

test('what could not be written leaves nothing behind in the next link', () => {
  const bytes = new LinkBytes();
  let deep: Json = 1;
  for (let i = 0; i < 100_000; i++) deep = [deep];
  bytes.start('');
  expect(() => bytes.json(deep, '')).toThrow();
  bytes.start('');
  bytes.text('a');
  expect(bytes.digest()).toBe(slow.link(slow.text('a')));
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
