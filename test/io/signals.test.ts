import { afterEach, expect, test } from 'vitest';
import { interruptible } from '../../src/io/signals.ts';

const before = { SIGINT: process.listenerCount('SIGINT'), SIGTERM: process.listenerCount('SIGTERM') };
afterEach(() => {
  expect(process.listenerCount('SIGINT')).toBe(before.SIGINT);
  expect(process.listenerCount('SIGTERM')).toBe(before.SIGTERM);
});

test('the first signal aborts and hands the second one back to the system, which ends the process', () => {
  let told = 0;
  const { signal } = interruptible(() => {
    told += 1;
  });
  expect(signal.aborted).toBe(false);
  expect(process.listenerCount('SIGINT')).toBe(before.SIGINT + 1);
  process.emit('SIGINT');
  expect(signal.aborted).toBe(true);
  expect(told).toBe(1);
  expect(process.listenerCount('SIGINT')).toBe(before.SIGINT);
});

test('without a signal nothing is aborted, and releasing gives the signals back', () => {
  const { signal, release } = interruptible(() => undefined);
  release();
  expect(signal.aborted).toBe(false);
});
