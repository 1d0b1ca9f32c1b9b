import { expect, test } from 'vitest';
import { configHash } from '../../src/io/manifest.ts';
import { someConfig } from './made.ts';

test('the hash of a config does not depend on the order of its keys', () => {
  const reversed = Object.fromEntries(Object.entries(someConfig).reverse()) as typeof someConfig;
  expect(configHash(reversed)).toBe(configHash(someConfig));
});

test('the hash of a config changes with what is computed, and not with where, how fast and how long', () => {
  const same = {
    ...someConfig,
    name: 'other',
    workers: 3,
    iterations: 9,
    runs: { dir: 'elsewhere' },
    checkpoint: { every: 1, keep: 1 },
    environment: { ...someConfig.environment, isolation: 'process' as const },
  };
  expect(configHash(same)).toBe(configHash(someConfig));
  const others = [
    { ...someConfig, seed: 1 },
    { ...someConfig, group: { size: 5 } },
    { ...someConfig, reward: { stepPenalty: 0.1 } },
    { ...someConfig, environment: { ...someConfig.environment, options: { values: 3 } } },
  ];
  expect(new Set([someConfig, ...others].map(configHash)).size).toBe(5);
});
