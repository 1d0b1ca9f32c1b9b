import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Tokenizer, toBytes } from '../../src/policy/tokenizer.ts';

/** Every UTF-16 code unit, surrogates often: pairs, halves, and halves that meet. */
const anyString = fc
  .array(
    fc.oneof(
      fc.integer({ min: 0, max: 0xffff }),
      fc.integer({ min: 0xd800, max: 0xdfff }),
      fc.integer({ min: 0x20, max: 0x7e }),
    ),
    { maxLength: 24 },
  )
  .map((units) => String.fromCharCode(...units));
const words = fc.uniqueArray(
  anyString.filter((word) => word !== ''),
  { maxLength: 12 },
);

test('decode(encode(text)) is text, for any words and any string, lone surrogates included', () => {
  fc.assert(
    fc.property(words, anyString, fc.array(fc.nat(), { maxLength: 6 }), (list, text, picks) => {
      const tokenizer = new Tokenizer(list);
      const mixed = picks.reduce((sum, pick) => sum + (list[pick % Math.max(1, list.length)] ?? ''), text);
      const ids = tokenizer.encode(mixed);
      expect(tokenizer.encodeAction(mixed)).toEqual([...ids, tokenizer.end]);
      expect(tokenizer.decode(ids)).toBe(mixed);
      expect(ids).not.toContain(tokenizer.end);
    }),
    { numRuns: 2000 },
  );
});

test('encode takes the longest token at each point, as the slow definition does', () => {
  const pieces = fc.constantFrom('a', 'b', 'ab', 'é', '😀', '\ud83d', '\ude00', 'ba');
  const text = fc.array(pieces, { maxLength: 10 }).map((list) => list.join(''));
  fc.assert(
    fc.property(
      fc.uniqueArray(
        text.filter((word) => word !== ''),
        { maxLength: 8 },
      ),
      text,
      (list, input) => {
        const tokenizer = new Tokenizer(list);
        const bytes = toBytes(input);
        const slow: number[] = [];
        for (let at = 0; at < bytes.length; ) {
          let best = bytes[at]!;
          let length = 1;
          for (let id = 257; id < tokenizer.size; id++) {
            const candidate = tokenizer.bytesOf(id);
            const matches = candidate.every((byte, i) => bytes[at + i] === byte);
            if (matches && (candidate.length > length || (candidate.length === 1 && length === 1))) {
              best = id;
              length = candidate.length;
            }
          }
          slow.push(best);
          at += length;
        }
        expect(tokenizer.encode(input)).toEqual(slow);
      },
    ),
  );
});

test('ids 0 to 255 are the bytes, 256 is end, words follow in the order given', () => {
  const tokenizer = new Tokenizer(['lookup ', 'look', '1', '12']);
  expect(tokenizer.size).toBe(261);
  expect(tokenizer.end).toBe(256);
  expect(tokenizer.encode('lookup look1212lo')).toEqual([257, 258, 259 + 1, 260, 0x6c, 0x6f]);
  expect(tokenizer.encode('é')).toEqual([0xc3, 0xa9]);
  expect(Array.from(tokenizer.bytesOf(257))).toEqual([...Buffer.from('lookup ')]);
  expect(tokenizer.bytesOf(256)).toHaveLength(0);
});

test('a word of one byte stands in for the byte, and both decode to it', () => {
  const tokenizer = new Tokenizer(['1']);
  expect(tokenizer.encode('1')).toEqual([257]);
  expect(tokenizer.decode([257, 0x31])).toBe('11');
});

test('end decodes to nothing', () => {
  const tokenizer = new Tokenizer([]);
  expect(tokenizer.decode([0x61, tokenizer.end, 0x62])).toBe('ab');
});

test('a surrogate pair is four bytes and never two halves, also where a word is one of the halves', () => {
  const tokenizer = new Tokenizer(['\ud83d']);
  expect(tokenizer.encode('😀')).toEqual([0xf0, 0x9f, 0x98, 0x80]);
  expect(tokenizer.encode('\ud83d')).toEqual([257]);
  expect(tokenizer.encode('\ude00\ud83d')).toEqual([0xed, 0xb8, 0x80, 257]);
});

test('a byte order mark survives', () => {
  const tokenizer = new Tokenizer([]);
  expect(tokenizer.decode(tokenizer.encode('\ufeffa\ufeff'))).toBe('\ufeffa\ufeff');
});

test('sampled bytes that are no text decode to U+FFFD and do not throw', () => {
  const tokenizer = new Tokenizer([]);
  expect(tokenizer.decode([0xff, 0x61, 0xe4, 0xbd])).toBe('\ufffda\ufffd');
  expect(tokenizer.decode([0xed, 0xa0])).toBe('\ufffd\ufffd');
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 256 })), (ids) => {
      expect(typeof tokenizer.decode(ids)).toBe('string');
    }),
  );
});

test('an id outside the vocabulary is refused', () => {
  const tokenizer = new Tokenizer(['x']);
  expect(() => tokenizer.decode([258])).toThrow('expected a token id in [0, 258), found 258');
  expect(() => tokenizer.bytesOf(-1)).toThrow('found -1');
});

test('empty and repeated words are refused by index', () => {
  expect(() => new Tokenizer(['a', ''])).toThrow(
    expect.objectContaining({ code: 'INVALID_WORDS', message: expect.stringContaining('words[1] is empty') }),
  );
  expect(() => new Tokenizer(['a', 'b', 'a'])).toThrow(
    expect.objectContaining({
      code: 'INVALID_WORDS',
      message: expect.stringContaining('words[2] repeats words[0], "a"'),
    }),
  );
});

test('describe shows a word, the end, and a part of a character', () => {
  const tokenizer = new Tokenizer(['lookup ']);
  expect([257, 256, 0xe4, 0x41].map((id) => tokenizer.describe(id))).toEqual(['"lookup "', '<end>', '<0xE4>', '"A"']);
});

test('nobody changes the ids that others are given for the same text', () => {
  const tokenizer = new Tokenizer(['ab']);
  for (const text of ['ab', 'ab'.repeat(100)]) {
    for (const ids of [tokenizer.encode(text), tokenizer.encodeAction(text)] as number[][]) {
      expect(() => ids.push(1)).toThrow(TypeError);
      expect(() => (ids[0] = 1)).toThrow(TypeError);
    }
    expect(tokenizer.decode(tokenizer.encodeAction(text))).toBe(text);
  }
});
