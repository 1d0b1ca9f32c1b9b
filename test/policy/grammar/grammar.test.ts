import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { FormatName } from '../../../src/env/environment.ts';
import { formatOf } from '../../../src/env/format.ts';
import { defineTool, type Tool } from '../../../src/env/tool.ts';
import { actionGrammar, type Grammar } from '../../../src/policy/grammar/index.ts';
import { Tokenizer } from '../../../src/policy/tokenizer.ts';
import type { Json } from '../../../src/records/json.ts';

interface Subject {
  readonly format: FormatName;
  readonly tools: readonly Tool[];
  readonly answer: z.ZodType<string>;
}

function tool(name: string, shape: z.core.$ZodLooseShape): Tool {
  return defineTool({ name, description: name, parameters: z.strictObject(shape), effect: 'read' });
}
const digits = z.string().regex(/^([1-9]?\d|1\d\d)$/);

const SUBJECTS: Readonly<Record<string, Subject>> = {
  'toy-lookup': {
    format: 'compact',
    tools: [
      tool('lookup', { key: z.enum(['Oslo', 'Osl', 'Bergen', 'Ås']) }),
      tool('calculator', { expression: z.string().regex(/^[1-9]?\d [+-] [1-9]?\d$/) }),
    ],
    answer: digits,
  },
  'compact values': {
    format: 'compact',
    tools: [
      tool('count', { n: z.int().min(-12).max(120) }),
      tool('huge', { n: z.int() }),
      tool('flag', { on: z.boolean().nullable() }),
      tool('list', { items: z.array(z.int().min(0).lt(30)).min(1).max(3) }),
      tool('say', { text: z.string().min(1).max(3) }),
      tool('pick', { one: z.literal([12, -1.5, true, null]) }),
    ],
    answer: z.union([z.literal('1'), z.enum(['12', 'a b']), z.string().regex(/^x+$/).max(3)]),
  },
  'json values': {
    format: 'json',
    tools: [
      tool('none', {}),
      tool('text', {
        s: z.string().max(4),
        t: z
          .string()
          .regex(/^[ab"\\]*$/)
          .min(1)
          .max(2)
          .optional(),
      }),
      tool('nested', {
        where: z.strictObject({ x: z.int().gt(-3).max(2), y: z.union([z.null(), z.enum(['12', '"'])]).optional() }),
        flags: z.array(z.boolean()).max(2),
      }),
      tool('optional', {
        a: z.int32().positive().max(12).optional(),
        b: z.literal('1').optional(),
        c: z.null().optional(),
      }),
      tool('either', {
        v: z
          .union([z.string().length(2), z.int().min(9).max(11), z.array(z.array(z.literal(1)).max(1)).length(2)])
          .nullable(),
      }),
    ],
    answer: z.string().max(3),
  },
  'json without bounds': {
    format: 'json',
    tools: [tool('a', { list: z.array(z.string()), n: z.uint32() }), tool('answer', { q: z.string().regex(/1\d*2/u) })],
    answer: z.string(),
  },
};

const WORDS = [
  [
    '1',
    '12',
    '123',
    '2 +',
    ' + ',
    '0',
    '10',
    '100',
    'lookup ',
    'look',
    'Oslo',
    'slo',
    'answer 1',
    'xx',
    'a b',
    'Å',
    '😀',
  ],
  [
    '{"tool":"',
    '","args":{',
    '{"',
    '":',
    '"}',
    '}}',
    ',"',
    'true',
    'tru',
    'null',
    '[[1],',
    '1]',
    '],[',
    '\\"',
    '\\u00',
    '\\n',
    '12',
    '-1',
  ],
  ['{"final":"12', '"final":"1', 'final":"12"}', 'ü', 'text":{', '":"', '\\\\', 'e,', 'e}', 'ls', '2,', ',1'],
  [],
];
const VOCABULARIES = [...WORDS, [...new Set(WORDS.flat())]].map((words) => new Tokenizer(words));

function accepts(grammar: Grammar, tokenizer: Tokenizer, text: string): boolean {
  let state = grammar.start;
  for (const id of tokenizer.encode(text)) {
    if (!grammar.allowed(state).includes(id)) return false;
    state = grammar.next(state, id);
  }
  return grammar.allowed(state).includes(tokenizer.end);
}

function refuses(grammar: Grammar, state: number, id: number): boolean {
  try {
    return grammar.allowed(grammar.next(state, id)).length === 0;
  } catch {
    return true;
  }
}

/** The slow definition: `text` is an action whose values the schemas admit, and it is how the format writes that action. */
function valid({ format, tools, answer }: Subject, text: string): boolean {
  const environment = formatOf({ name: 'test', tools, format });
  const action = environment.parse(text, 0);
  if (action.final !== undefined) {
    return (
      answer.safeParse(action.final).success &&
      wellFormed(action.final) &&
      environment.action({ final: action.final }) === text
    );
  }
  const [call, ...more] = action.calls;
  const parameters = tools.find(({ name }) => name === call?.name)?.parameters;
  if (call === undefined || more.length > 0 || call.arguments === null || parameters === undefined) return false;
  const parsed = parameters.safeParse(call.arguments);
  // zod gives an object's keys in declared order, nested ones too.
  const written = parsed.data as { readonly [key: string]: Json } | undefined;
  if (written === undefined || !wellFormed(written)) return false;
  return environment.action({ calls: [{ tool: call.name, arguments: written }] }) === text;
}

function wellFormed(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  return typeof value !== 'object' || value === null || Object.values(value).every(wellFormed);
}

/** Ids that close something: so that walks through unbounded strings and arrays end. */
const CLOSING = new Map(
  VOCABULARIES.map((tokenizer) => [
    tokenizer,
    new Set(
      [...Array(tokenizer.size).keys()].filter((id) => id === tokenizer.end || /["}\]]$/.test(tokenizer.decode([id]))),
    ),
  ]),
);

/** Up to `end`, choosing by `picks`; every second time among the closing tokens, where there are any. */
function walk(grammar: Grammar, tokenizer: Tokenizer, picks: readonly number[]): number[] | undefined {
  const ids: number[] = [];
  let state = grammar.start;
  for (let i = 0; i < 400; i++) {
    const allowed = grammar.allowed(state);
    if (allowed.length === 0) throw new Error(`a dead end after ${JSON.stringify(tokenizer.decode(ids))}`);
    const pick = picks[i % picks.length]! + Math.floor(i / picks.length);
    const closing = allowed.filter((id) => CLOSING.get(tokenizer)!.has(id));
    const from = pick % 2 === 0 && closing.length > 0 ? closing : allowed;
    const id = from[Math.floor(pick / 2) % from.length]!;
    ids.push(id);
    if (id === tokenizer.end) return ids;
    state = grammar.next(state, id);
  }
  return undefined;
}

const picks = fc.array(fc.nat({ max: 10_000 }), { minLength: 8, maxLength: 40 });
const some = <T>(items: readonly T[]) => fc.constantFrom(...items);

describe.each(Object.entries(SUBJECTS))('%s', (_, subject) => {
  const grammars = VOCABULARIES.map((tokenizer) => ({ tokenizer, grammar: actionGrammar(subject, tokenizer) }));

  test('every walk over allowed tokens ends in a valid action, by its one canonical encoding, and meets no dead end', () => {
    let ended = 0;
    let walks = 0;
    fc.assert(
      fc.property(some(grammars), picks, ({ grammar, tokenizer }, choices) => {
        const ids = walk(grammar, tokenizer, choices);
        walks++;
        if (ids === undefined) return;
        ended++;
        const text = tokenizer.decode(ids);
        expect(valid(subject, text), text).toBe(true);
        expect(ids).toEqual([...tokenizer.encode(text), tokenizer.end]);
      }),
      { numRuns: 250 },
    );
    expect(ended / walks).toBeGreaterThan(0.5);
  });

  test('exactly the valid texts are accepted: a text that is nearly right is accepted if and only if its action is valid', () => {
    const pool = [
      ...new Set(WORDS.flat()),
      ' ',
      '"',
      '\\',
      '9',
      '-',
      '+',
      '0',
      'e',
      '.',
      '{',
      '}',
      '[',
      ']',
      ',',
      '\n',
      '\u2028',
      '\u007f',
      '\ud83d',
      'é',
    ];
    const edits = fc.array(
      fc.record({
        at: fc.double({ min: 0, max: 1, noNaN: true }),
        cut: some([0, 0, 1, 1, 2, 5]),
        put: some(['', '', ...pool]),
      }),
      { maxLength: 2 },
    );
    let right = 0;
    let wrong = 0;
    fc.assert(
      fc.property(some(grammars), some(grammars), picks, edits, (made, checked, choices, changes) => {
        const ids = walk(made.grammar, made.tokenizer, choices);
        if (ids === undefined) return;
        const text = changes.reduce((before, { at, cut, put }) => {
          const from = Math.floor(at * (before.length + 1));
          return before.slice(0, from) + put + before.slice(from + cut);
        }, made.tokenizer.decode(ids));
        const expected = valid(subject, text);
        expect(accepts(checked.grammar, checked.tokenizer, text), JSON.stringify(text)).toBe(expected);
        if (expected) right++;
        else wrong++;
      }),
      { numRuns: 300 },
    );
    expect(Math.min(right, wrong)).toBeGreaterThan(40);
  });

  test('next takes exactly the allowed tokens, in ascending order, and end has no state after it', () => {
    const { grammar, tokenizer } = grammars[4]!;
    fc.assert(
      fc.property(picks, (choices) => {
        let state = grammar.start;
        for (const pick of choices.slice(0, 12)) {
          const allowed = grammar.allowed(state);
          const open = new Set(allowed);
          expect(Array.from(allowed)).toEqual([...open].sort((a, b) => a - b));
          for (let id = 0; id < tokenizer.size; id++) {
            if (refuses(grammar, state, id) === open.has(id) && id !== tokenizer.end)
              expect.fail(tokenizer.describe(id));
          }
          expect(refuses(grammar, state, tokenizer.end)).toBe(true);
          const id = allowed[pick % allowed.length]!;
          if (id === tokenizer.end) return;
          state = grammar.next(state, id);
        }
      }),
      { numRuns: 8 },
    );
  });
});

const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 5 }),
  some(['', '"', '\\', '12', 'a"\\b', '1902', '\u2028', '\0', '😀']),
);

test.each([
  [SUBJECTS['json values']!, 'text', fc.record({ s: anyText, t: anyText }, { requiredKeys: ['s'] })],
  [
    SUBJECTS['json without bounds']!,
    'a',
    fc.record({ list: fc.array(anyText), n: fc.oneof(fc.integer(), fc.nat(), fc.double()) }),
  ],
  [SUBJECTS['json without bounds']!, 'answer', fc.record({ q: anyText })],
  [
    SUBJECTS['json values']!,
    'optional',
    fc.record({ a: fc.integer({ min: -2, max: 14 }), b: some(['1', '2']), c: some([null, 0]) }, { requiredKeys: [] }),
  ],
  [
    SUBJECTS['json values']!,
    'nested',
    fc.record({
      where: fc.record(
        { x: fc.integer({ min: -4, max: 4 }), y: some([null, '12', '"', '1']) },
        { requiredKeys: ['x'] },
      ),
      flags: fc.array(fc.boolean(), { maxLength: 3 }),
    }),
  ],
  [
    SUBJECTS['json values']!,
    'either',
    fc.record({
      v: fc.oneof(
        anyText,
        fc.integer({ min: 7, max: 13 }),
        fc.array(fc.array(some([1, 2]), { maxLength: 2 }), { maxLength: 3 }),
        some([null]),
      ),
    }),
  ],
  [SUBJECTS['compact values']!, 'count', fc.record({ n: fc.integer({ min: -30, max: 140 }) })],
  [
    SUBJECTS['compact values']!,
    'huge',
    fc.record({
      n: fc.oneof(fc.maxSafeInteger(), some([2 ** 53, -(2 ** 53), 2 ** 53 - 1, 1 - 2 ** 53, 1e20, 1e21, 0.5])),
    }),
  ],
  [SUBJECTS['compact values']!, 'say', fc.record({ text: anyText })],
] as const)(
  'generated arguments are accepted if and only if their schema admits them (%#: %o, %s)',
  (subject, name, args) => {
    const { parameters } = subject.tools.find((declared) => declared.name === name)!;
    const { action } = formatOf({ name: 'test', ...subject });
    const grammars = VOCABULARIES.map((tokenizer) => ({ tokenizer, grammar: actionGrammar(subject, tokenizer) }));
    const seen = new Set<boolean>();
    fc.assert(
      fc.property(
        args as fc.Arbitrary<{ readonly [key: string]: Json }>,
        some(grammars),
        (values, { grammar, tokenizer }) => {
          const expected = parameters.safeParse(values).success && wellFormed(values);
          const text = action({ calls: [{ tool: name, arguments: values }] });
          expect(accepts(grammar, tokenizer, text), text).toBe(expected);
          seen.add(expected);
        },
      ),
      { numRuns: 300 },
    );
    expect(seen).toEqual(new Set([true, false]));
  },
);

describe('integers', () => {
  test('exactly the range, as JSON.stringify writes it', () => {
    const tokenizer = new Tokenizer(['1', '12', '123', '-1']);
    fc.assert(
      fc.property(fc.integer({ min: -1200, max: 1200 }), fc.nat({ max: 300 }), (low, span) => {
        const grammar = actionGrammar(
          {
            format: 'compact',
            tools: [
              tool('n', {
                n: z
                  .int()
                  .min(low)
                  .max(low + span),
              }),
            ],
            answer: z.literal('x'),
          },
          tokenizer,
        );
        for (let n = low - 15; n <= low + span + 15; n++) {
          expect(accepts(grammar, tokenizer, `n ${n}`), `${n}`).toBe(n >= low && n <= low + span);
        }
        for (const text of ['-0', '00', '01', '+1', '1.0', '1e2', '', '-', ' 1']) {
          expect(accepts(grammar, tokenizer, `n ${text}`), text).toBe(false);
        }
      }),
      { numRuns: 30 },
    );
  });

  test('bounds that are fractions, exclusive or beyond the safe integers', () => {
    const tokenizer = new Tokenizer([]);
    const admitted = (schema: z.ZodType, list: readonly number[]) => {
      const grammar = actionGrammar(
        { format: 'compact', tools: [tool('n', { n: schema })], answer: z.literal('x') },
        tokenizer,
      );
      return list.filter((n) => accepts(grammar, tokenizer, `n ${JSON.stringify(n)}`));
    };
    for (const schema of [
      z.int().gt(-1.5).lt(2.5),
      z.number().int().gt(-1).lt(2),
      z.int().min(-1e300).max(1e300),
      z.int().nonnegative(),
      z.int().negative(),
      z.int32(),
      z.uint32(),
    ]) {
      const list = [
        -(2 ** 53),
        1 - 2 ** 53,
        -(2 ** 31) - 1,
        -(2 ** 31),
        -2,
        -1,
        0,
        1,
        2,
        3,
        2 ** 31 - 1,
        2 ** 31,
        2 ** 32 - 1,
        2 ** 32,
        2 ** 53 - 1,
        2 ** 53,
      ];
      expect(admitted(schema, list)).toEqual(list.filter((n) => schema.safeParse(n).success));
    }
  });
});

describe('canonical tokens, by hand', () => {
  const allowedAfter = (
    options: readonly [string, ...string[]],
    words: readonly string[],
    prefix: readonly number[],
  ) => {
    const tokenizer = new Tokenizer(['answer ', ...words]);
    const grammar = actionGrammar({ format: 'compact', tools: [], answer: z.enum(options) }, tokenizer);
    const state = prefix.reduce((at, id) => grammar.next(at, id), grammar.start);
    return Array.from(grammar.allowed(state), (id) => tokenizer.describe(id));
  };
  const answer = 257;
  const a = 0x61;

  test('a token that only a longer one could follow up is not allowed', () => {
    expect(allowedAfter(['abc'], ['abc'], [answer])).toEqual(['"abc"']);
    expect(allowedAfter(['abc', 'abd'], ['abc'], [answer])).toEqual(['"a"', '"abc"']);
    expect(allowedAfter(['abc', 'abd'], ['abc'], [answer, a, 0x62])).toEqual(['"d"']);
  });

  test('a longer token may not be completed across several tokens', () => {
    // "ab" + "c" would be read back as "abc", "ab" + "cd" as "abc" + "d".
    expect(allowedAfter(['abcd', 'ab', 'abx'], ['ab', 'abc', 'cd'], [answer])).toEqual(['"ab"', '"abc"']);
    expect(allowedAfter(['abcd', 'ab', 'abx'], ['ab', 'abc', 'cd'], [answer, 258])).toEqual(['"x"', '<end>']);
  });

  test('end is allowed although a longer token has been begun', () => {
    expect(allowedAfter(['a', 'abc'], ['abc'], [answer, a])).toEqual(['<end>']);
  });

  test('a word of one byte is that byte', () => {
    expect(allowedAfter(['a'], ['a'], [answer])).toEqual(['"a"']);
    const tokenizer = new Tokenizer(['a']);
    const grammar = actionGrammar({ format: 'compact', tools: [], answer: z.literal('a') }, tokenizer);
    const state = tokenizer
      .encode('answer ')
      .slice(1, -1)
      .reduce((at, id) => grammar.next(at, id), grammar.next(grammar.start, 257));
    expect(Array.from(grammar.allowed(grammar.next(state, 0x20)))).toEqual([257]);
  });

  test('a literal may contain a lone surrogate', () => {
    const tokenizer = new Tokenizer([]);
    for (const format of ['compact', 'json'] as const) {
      const grammar = actionGrammar({ format, tools: [], answer: z.literal('\ud83d!') }, tokenizer);
      expect(
        accepts(grammar, tokenizer, formatOf({ name: 'test', tools: [], format }).action({ final: '\ud83d!' })),
      ).toBe(true);
    }
  });
});

test('JSON strings are escaped as JSON.stringify escapes them, and in no other way', () => {
  const tokenizer = new Tokenizer([]);
  const grammar = actionGrammar({ format: 'json', tools: [], answer: z.string().max(1) }, tokenizer);
  const admits = (inner: string) => accepts(grammar, tokenizer, `{"final":${inner}}`);
  for (let code = 0; code < 0x300; code++)
    expect(admits(JSON.stringify(String.fromCodePoint(code))), `${code}`).toBe(true);
  for (const code of [0x2028, 0xd7ff, 0xe000, 0xfeff, 0xffff, 0x10000, 0x10ffff])
    expect(admits(JSON.stringify(String.fromCodePoint(code)))).toBe(true);
  for (const other of [
    '\\/',
    '\\u0041',
    '\\u0022',
    '\\u001F',
    '\\u000a',
    '\\ud83d',
    '\\ud83d\\ude00',
    '\n',
    '\x1f',
    '"',
    '\\',
  ]) {
    expect(admits(`"${other}"`), other).toBe(false);
  }
});

test('a choice of a thousand words is admitted, each of them and nothing else', () => {
  const keys = Array.from({ length: 1000 }, (_, i) => `k${i * 37}`);
  const tokenizer = new Tokenizer(keys.slice(0, 300));
  const grammar = actionGrammar(
    { format: 'compact', tools: [], answer: z.enum(keys as [string, ...string[]]) },
    tokenizer,
  );
  const known = new Set(keys);
  for (let i = 0; i < 40_000; i += 7)
    expect(accepts(grammar, tokenizer, `answer k${i}`), `${i}`).toBe(known.has(`k${i}`));
});

test('the grammar of toy-lookup has few states, and the same array is given each time', () => {
  const { grammar, tokenizer } = {
    tokenizer: VOCABULARIES[0]!,
    grammar: actionGrammar(SUBJECTS['toy-lookup']!, VOCABULARIES[0]!),
  };
  const reached = new Set([grammar.start]);
  for (const state of reached) {
    expect(grammar.allowed(state)).toBe(grammar.allowed(state));
    for (const id of grammar.allowed(state)) if (id !== tokenizer.end) reached.add(grammar.next(state, id));
  }
  expect(reached.size).toBeLessThan(120);
});
