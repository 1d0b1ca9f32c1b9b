import { afterEach, expect, test, vi } from 'vitest';
import { report } from '../../src/cli/failure.ts';

const write = vi.spyOn(process.stderr, 'write');
const exitCode = process.exitCode;
afterEach(() => {
  write.mockReset();
  process.exitCode = exitCode;
});

/** As WebAssembly throws them. */
const runtimeError = (message: string) => Object.assign(new Error(message), { name: 'RuntimeError' });

function told(error: unknown): string {
  let text = '';
  write.mockImplementation((part) => {
    text += part;
    return true;
  });
  report(error, false);
  return text;
}

test('memory that has run out is told as that, wherever it ran out', () => {
  const wasm = runtimeError('Aborted(). Build with -sASSERTIONS for more info.');
  for (const error of [
    wasm,
    new RangeError('Array buffer allocation failed'),
    new RangeError('Invalid array length'),
  ]) {
    expect(told(error)).toMatch(/^error: expected enough memory.*\nhint: Make smaller/);
    expect(process.exitCode).toBe(1);
  }
  expect(told(runtimeError('unreachable'))).toContain('ISOGYM_DEBUG=1');
});

test('a failure without a message of ours shows no stack', () => {
  expect(told(new TypeError('x is not a function'))).toBe(
    'error: x is not a function\nhint: ISOGYM_DEBUG=1 shows where it happened.\n',
  );
});
