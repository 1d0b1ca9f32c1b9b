import fc from 'fast-check';
import { expect, it } from 'vitest';
import { partsOf } from '../../src/env/json-source.ts';

const spaces = fc.constantFrom('', ' ', '\n\t', '\r\n  ');

it('the parts of any object and array are found, whatever the spaces between them', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.string(), fc.jsonValue())), spaces, fc.boolean(), (members, space, isObject) => {
      const parts = members.map(([key, value]) => ({
        key: isObject ? key : null,
        source: JSON.stringify(value, null, space),
      }));
      const inner = parts.map(({ key, source }) =>
        key === null ? `${space}${source}${space}` : `${space}${JSON.stringify(key)}${space}:${space}${source}${space}`,
      );
      const text = `${space}${isObject ? '{' : '['}${inner.join(',')}${space}${isObject ? '}' : ']'}${space}`;
      JSON.parse(text);
      expect(partsOf(text)).toEqual(parts);
    }),
  );
});

it('brackets, commas, colons and quotes within strings separate nothing', () => {
  expect(partsOf('{"a]}":"[{,:\\"","\\u0062":[{"c":"}"},1.5e3],"d":null}')).toEqual([
    { key: 'a]}', source: '"[{,:\\""' },
    { key: 'b', source: '[{"c":"}"},1.5e3]' },
    { key: 'd', source: 'null' },
  ]);
});
