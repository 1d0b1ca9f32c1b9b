import { expect, test } from 'vitest';
import { benchRecovery } from '../../src/bench/sandbox.ts';

test('an attack that leaves its host alive is an error, not a quick recovery', async () => {
  const { signal } = new AbortController();
  const o = { rounds: 1, now: () => 0, signal, sleep: () => Promise.resolve() };
  await expect(benchRecovery({ ...o, attacks: { harmless: '() => 1' } })).rejects.toThrow(
    /^harmless: expected an attack/,
  );
}, 30_000);
