import { tmpdir } from 'node:os';
import { expect, test } from 'vitest';
import { isogym } from './isogym.ts';

test.each([
  ['--rows', '0'],
  ['--rows', '1e9'],
  ['--length', '99999999'],
  ['--decode', '16,'],
  ['--seconds', '-1'],
  ['--seconds', 'x'],
  ['--seconds', ''],
  ['--backend', 'wsam'],
  ['--size', '7'],
])('a figure that cannot be measured is refused: %s %s', (option, value) => {
  const { code, stdout } = isogym(tmpdir(), 'bench', 'train', option, value, '--json');
  expect(code).toBe(2);
  expect(JSON.parse(stdout).error.message).toContain(`found ${value.split(',').at(-1)}`);
});

test('a mode that the backend has not is refused, not left out', () => {
  const { code, stdout } = isogym(tmpdir(), 'bench', 'train', '--backend', 'wasm', '--mode', 'replay', '--json');
  expect(code).toBe(2);
  expect(JSON.parse(stdout).error).toMatchObject({ code: 'BENCH_MODE' });
});
