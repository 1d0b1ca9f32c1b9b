import { expect, test } from 'vitest';
import { changesSince, configHash, createManifest } from '../../src/io/manifest.ts';
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

test('where the learning rate decays, the number of iterations is part of what is computed', () => {
  const decaying = { ...someConfig, optimizer: { ...someConfig.optimizer, decay: 0.5 } };
  expect(configHash({ ...decaying, iterations: decaying.iterations + 1 })).not.toBe(configHash(decaying));
});

test('what has changed since a run began is said, and nothing where nothing has', () => {
  const modules = { environment: 'a', verifier: 'b' };
  const then = createManifest({ config: someConfig, command: 'x', backend: 'wasm', device: 'd', modules });
  expect(changesSince(then, then)).toEqual([]);
  const now = { ...then, backend: 'cpu', v8: '99.1', modules: { environment: 'c', verifier: 'd' } };
  expect(changesSince(then, now)).toEqual([
    "the environment's code has changed",
    "the verifier's code has changed",
    'it was on backend wasm',
    `it was under V8 ${then.v8}, this is 99.1`,
  ]);
});
