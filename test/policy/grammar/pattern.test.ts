import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type Language, Languages } from '../../../src/policy/grammar/language.ts';
import { parsePattern } from '../../../src/policy/grammar/pattern.ts';
import { Texts } from '../../../src/policy/grammar/text.ts';
import { toBytes } from '../../../src/policy/tokenizer.ts';

function refuse(found: string): never {
  throw new Error(`refused: ${found}`);
}

/** Whether each of `texts` is in the language of `regexp`, bare and as JSON. */
function matcher(regexp: RegExp, min = 0, max = Number.POSITIVE_INFINITY) {
  const languages = new Languages();
  const texts = new Texts(languages);
  const rules = { min, max, patterns: [parsePattern(languages, regexp, refuse)] };
  const accepts = (language: Language, text: string) =>
    toBytes(text).reduce((state, byte) => languages.step(state, byte), language).nullable;
  const bare = texts.bare(rules);
  const quoted = texts.quoted(rules);
  return {
    bare: (text: string) => accepts(bare, text),
    quoted: (text: string) => accepts(quoted, JSON.stringify(text)),
    empty: bare === languages.empty,
  };
}

const PIECES = [
  'a',
  'b',
  'z',
  'A',
  '0',
  '7',
  '_',
  '-',
  ' ',
  '\n',
  '\r',
  '\u2028',
  '\t',
  '\0',
  '"',
  '\\',
  '/',
  ']',
  '{',
  '}',
  '^',
  '$',
  '.',
];
const WIDE = [
  'é',
  'ß',
  '\u00a0',
  '\ufeff',
  '你',
  '\ud7ff',
  '\ue000',
  '\uffff',
  '😀',
  '😁',
  '🚀',
  '\u{10000}',
  '\u{10ffff}',
  'π',
];
const wellFormed = fc.oneof(
  fc.array(fc.constantFrom(...PIECES, ...WIDE), { maxLength: 8 }).map((list) => list.join('')),
  fc.array(fc.constantFrom('a', 'b', '0', '1', '-', ' '), { maxLength: 8 }).map((list) => list.join('')),
  fc.string({ unit: 'binary', maxLength: 6 }),
);

/** Sources of regular expressions out of the supported subset; short ones, because RegExp itself backtracks for seconds on long ones. */
const atom = fc.constantFrom(
  'a',
  'b',
  '0',
  ' ',
  '-',
  '_',
  '.',
  '\\d',
  '\\D',
  '\\w',
  '\\W',
  '\\s',
  '\\S',
  '\\.',
  '\\\\',
  '\\/',
  '\\n',
  '\\t',
  '\\x41',
  '\\u00e9',
  '\\uD83D\\uDE00',
  'é',
  '你',
  '😀',
  '[ab]',
  '[^a]',
  '[a-z]',
  '[^\\d]',
  '[\\w.]',
  '[^\\s\\S]',
  '[\\s\\S]',
  '[0-9\\-]',
  '[😀a]',
  '[^😀]',
  '[\\]a]',
  '[]',
  '[^]',
  '\\cA',
  '[\\0]',
);
const quantifier = fc.constantFrom(
  '',
  '',
  '',
  '?',
  '*',
  '+',
  '{2}',
  '{1,}',
  '{0,2}',
  '{1,3}',
  '*?',
  '+?',
  '??',
  '{1,2}?',
);
const { alternatives } = fc.letrec<{ alternatives: string; sequence: string; part: string }>((tie) => ({
  part: fc
    .tuple(
      fc.oneof(
        { maxDepth: 2, depthSize: 'small' },
        atom,
        tie('alternatives').map((inner) => `(${inner})`),
        tie('alternatives').map((inner) => `(?:${inner})`),
        tie('alternatives').map((inner) => `(?<n>${inner})`),
      ),
      quantifier,
    )
    .map(([body, count]) => body + count),
  sequence: fc.array(tie('part'), { maxLength: 2 }).map((parts) => parts.join('')),
  alternatives: fc.array(tie('sequence'), { minLength: 1, maxLength: 2 }).map((options) => options.join('|')),
}));
const topLevel = fc
  .array(fc.tuple(fc.constantFrom('', '^'), alternatives, fc.constantFrom('', '$')), { minLength: 1, maxLength: 2 })
  .map((options) => options.map(([before, inner, after]) => `${before}(?:${inner})${after}`).join('|'))
  .map((source) => {
    let groups = 0;
    return source.replaceAll('(?<n>', () => `(?<n${groups++}>`);
  });

function compile(source: string, flags: string): RegExp | undefined {
  try {
    return new RegExp(source, flags);
  } catch {
    return undefined;
  }
}

describe('a pattern admits what RegExp.test does, on well-formed strings', () => {
  test('for generated expressions, with and without the u flag, bare and as JSON', () => {
    let compared = 0;
    let matched = 0;
    fc.assert(
      fc.property(
        topLevel,
        fc.constantFrom('', 'u'),
        fc.array(wellFormed, { minLength: 8, maxLength: 8 }),
        (source, flags, texts) => {
          const regexp = compile(source, flags);
          if (regexp === undefined) return;
          const matches = matcher(regexp);
          for (const text of texts) {
            const expected = regexp.test(text);
            expect([matches.bare(text), matches.quoted(text)], `${regexp} on ${JSON.stringify(text)}`).toEqual([
              expected,
              expected,
            ]);
            compared++;
            matched += Number(expected);
          }
        },
      ),
      { numRuns: 400 },
    );
    expect(compared).toBeGreaterThan(2800);
    expect(matched / compared).toBeGreaterThan(0.1);
    expect(matched / compared).toBeLessThan(0.9);
  });

  // As sources: the linter would give some of them the u flag.
  test.each([
    ['^[1-9]?\\d [+-] [1-9]?\\d$', ''],
    ['^([1-9]?\\d|1\\d\\d)$', ''],
    ['^a|b$', ''],
    ['a{2,3}b', ''],
    ['^.$', ''],
    ['^.$', 'u'],
    ['^..$', ''],
    ['^[😀😁]$', ''],
    ['^[😀😁]$', 'u'],
    ['^[😀😁][😀😁]$', ''],
    ['^[^😀]+$', ''],
    ['^[^😀]+$', 'u'],
    ['^[\\u{1F600}-\\u{1F64F}]+$', 'u'],
    ['^\\ud83d\\ude00$', ''],
    ['^\\ud83d\\ude00$', 'u'],
    ['^\\ud83d', ''],
    ['^\\ud83d', 'u'],
    ['\\udE00$', ''],
    ['\\udE00$', 'u'],
    ['^[\\w-a]+$', ''],
    ['^[a-\\d]+$', ''],
    ['^{a}$', ''],
    ['^a{,2}$', ''],
    ['^x]y}$', ''],
    ['^\\{"k":\\d+\\}$', ''],
    ['^(?<year>\\d{4})-(0[1-9]|1[0-2])$', ''],
    ['^[\\b]?$', ''],
    ['^(a*)*$', ''],
    ['^(a|ab)(c|bcd)(d*)$', ''],
    ['^(?:)$', ''],
    ['(?:)', ''],
    ['^(|a)+b$', ''],
    ['^[^]$', ''],
    ['^[^]$', 'u'],
  ])('for /%s/%s', (source, flags) => {
    const regexp = new RegExp(source, flags);
    const matches = matcher(regexp);
    const near = fc.oneof(wellFormed, fc.stringMatching(/^[ab01 +\-😀😁\u{1F600}xy{}",:k\]\n]{0,7}$/u));
    fc.assert(
      fc.property(near, (text) => {
        expect([matches.bare(text), matches.quoted(text)], JSON.stringify(text)).toEqual(
          Array(2).fill(regexp.test(text)),
        );
      }),
      { numRuns: 200 },
    );
  });

  test.each([
    ['^[1-9]?\\d [+-] [1-9]?\\d$', '', ['7 + 12', '0 - 0', '99 + 1'], ['07 + 1', '7+1', '7 + 100', '7 + 1\n']],
    ['^..$', '', ['ab', '😀'], ['a', '😀a', 'abc']],
    ['^..$', 'u', ['ab', '😀a'], ['😀', 'abc']],
    ['^[😀]$', '', [], ['😀']],
    ['^[😀][😀]$', '', ['😀'], ['😀😀']],
    ['^\\ud83d', '', ['😀', '😁x'], ['🨀', 'a']],
  ])('/%s/%s: by hand', (source, flags, yes, no) => {
    const regexp = new RegExp(source, flags);
    const matches = matcher(regexp);
    for (const text of yes) expect([regexp.test(text), matches.bare(text)], text).toEqual([true, true]);
    for (const text of no) expect([regexp.test(text), matches.bare(text)], text).toEqual([false, false]);
  });

  test('a pattern that no well-formed string matches is the empty language', () => {
    expect(matcher(compile('^[😀]$', '')!).empty).toBe(true);
    expect(matcher(/^\ud83d$/u).empty).toBe(true);
    expect(matcher(compile('^[]$', '')!).empty).toBe(true);
    expect(matcher(/^\d{5}$/, 0, 3).empty).toBe(true);
    expect(matcher(/^\d{5}$/, 0, 5).empty).toBe(false);
    expect(matcher(/^(?:😀a)+$/u, 5, 5).empty).toBe(true);
  });

  test('every state has a way to the end: a walk along any byte that is not refused arrives', () => {
    const languages = new Languages();
    const texts = new Texts(languages);
    for (const [regexp, min, max] of [
      [/^(?:ab|😀)+$/u, 5, 9],
      [/^[^😀]+x$/u, 3, 6],
      [/é.*ü/, 4, 7],
    ] as const) {
      const rules = { min, max, patterns: [parsePattern(languages, regexp, refuse)] };
      fc.assert(
        fc.property(fc.array(fc.nat(), { minLength: 40, maxLength: 40 }), (picks) => {
          let state = texts.quoted(rules);
          const bytes: number[] = [];
          for (const pick of picks) {
            if (state.nullable) break;
            const open = [...Array(256).keys()].filter((byte) => languages.step(state, byte) !== languages.empty);
            expect(open.length).toBeGreaterThan(0);
            const byte = open[pick % open.length]!;
            bytes.push(byte);
            state = languages.step(state, byte);
          }
          if (!state.nullable) return;
          const text = JSON.parse(Buffer.from(bytes).toString('utf8'));
          expect(regexp.test(text) && [...text].length >= min && [...text].length <= max, text).toBe(true);
        }),
      );
    }
  });

  test('length counts code points, as zod does', () => {
    const matches = matcher(/^[a😀]*$/u, 2, 3);
    const schema = z.string().min(2).max(3);
    for (const text of ['', 'a', 'aa', '😀', 'a😀', '😀😀', 'aaa', 'aaaa']) {
      expect(matches.bare(text), text).toBe(schema.safeParse(text).success);
    }
  });
});

test.each([
  [/a/i, 'the flags "i"'],
  [/a/m, 'the flags "m"'],
  [/a/y, 'the flags "y"'],
  [/(?=a)/, 'a look-around'],
  [/(?<!a)b/, 'a look-around'],
  [/(a)\1/, '\\1'],
  [/(?<n>a)\k<n>/, '\\k'],
  [/\bfoo/, 'a word boundary'],
  [/\p{L}/u, '\\p'],
  [/a^b/, '^ after the beginning'],
  [/a$b/, '$ before the end'],
  [/(a$)/, 'an anchor inside a group'],
  [/(^a)/, '^ after the beginning'],
  [/a{5000}/, 'a count above 4096'],
])('%s is refused by name: %s', (regexp, found) => {
  const languages = new Languages();
  expect(() => parsePattern(languages, regexp, refuse)).toThrow(found);
});
