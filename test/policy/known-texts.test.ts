import fc from 'fast-check';
import { expect, test } from 'vitest';
import { KnownTexts } from '../../src/policy/known-texts.ts';

test('what a text came to is that of this text, however many there are', () => {
  const known = new KnownTexts((text) => ({ text }));
  // Far more than are kept, and the same ones again.
  for (let i = 0; i < 20_000; i++) expect(known.of(`t${i % 5000}`).text).toBe(`t${i % 5000}`);
  const anyString = fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)) });
  fc.assert(fc.property(anyString, (text) => known.of(text).text === text));
});

test('a short text is worked out once, a long one each time', () => {
  let made = 0;
  const known = new KnownTexts((text) => ({ text, made: ++made }));
  expect([known.of('a').made, known.of('b').made, known.of('a').made]).toEqual([1, 2, 1]);
  const long = 'x'.repeat(65);
  expect([known.of(long).made, known.of(long).made]).toEqual([3, 4]);
});
