import { afterEach, expect, test, vi } from 'vitest';
import { runLong } from '../../src/cli/session.ts';
import { IsogymError } from '../../src/records/errors.ts';

const exitCode = process.exitCode;
const write = vi.spyOn(process.stdout, 'write').mockImplementation(() => true);
afterEach(() => {
  process.exitCode = exitCode;
  write.mockClear();
});

const interruptedBy = (error: Error) =>
  runLong(false, async ({ signal }) => {
    process.emit('SIGINT');
    expect(signal.aborted).toBe(true);
    throw error;
  });

test('what dies of a Ctrl-C before anything could be kept is an interruption', async () => {
  await interruptedBy(new Error('a host died'));
  expect(process.exitCode).toBe(130);
  expect(write.mock.calls.join()).toContain('Interrupted before there was anything to go on from: a host died');
});

test('an interrupted run that cannot be kept is a failure', async () => {
  const full = new IsogymError('RUN_WRITE', 'cannot write: ENOSPC');
  await expect(interruptedBy(full)).rejects.toBe(full);
  expect(process.exitCode).not.toBe(130);
});
