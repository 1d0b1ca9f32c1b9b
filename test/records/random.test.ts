import fc from 'fast-check';
import { expect, test } from 'vitest';
import { deriveSeed } from '../../src/records/random.ts';

test('a derived seed is its path, each part escaped, so that no two paths are one seed', () => {
  expect(deriveSeed('run', 'episode', 3, 'a/b c', 'é\ud800', '-0.5_', '')).toBe(
    'run/episode/3/a%2Fb%20c/%C3%A9%EF%BF%BD/-0.5_/',
  );
  const part = fc.string({ unit: fc.constantFrom('a', '/', '%', '2', 'F', '-', '.', '\n', 'é', '😀') });
  fc.assert(
    fc.property(fc.array(part), (path) => {
      const escaped = path.map((one) => encodeURIComponent(one));
      expect(deriveSeed('seed', ...path)).toBe(['seed', ...escaped].join('/'));
    }),
  );
});
