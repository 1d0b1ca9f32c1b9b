import { expect, test } from 'vitest';
import { changesSince, configHash } from '../../src/io/manifest.ts';
import { manifestOf, someConfig } from './made.ts';

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
  const then = manifestOf(someConfig);
  expect(changesSince(then, then)).toEqual([]);
  const now = {
    ...then,
    ...{ isogym: '0', backend: 'cpu', v8: '99.1', platform: 'plan9-vax', config: 'c', tasks: 'u' },
  };
  const module = { code: 'x', declaration: 'y' };
  expect(changesSince(then, { ...now, environment: module, verifier: module })).toEqual([
    "the environment's code has changed",
    'what the environment declares has changed',
    "the verifier's code has changed",
    'what the verifier declares has changed',
    'its tasks are others',
    'config.yaml has changed',
    'it was on backend wasm',
    `it was under V8 ${then.v8}, this is 99.1`,
    `it was on ${then.platform}, this is plan9-vax`,
    `it was under isogym ${then.isogym}, this is 0`,
  ]);
});

test('what judges and what computes tensors is no change where neither is used', () => {
  const { verifier: _, backend: __, ...now } = manifestOf(someConfig);
  expect(
    changesSince({ ...manifestOf(someConfig), backend: 'other', verifier: { code: '', declaration: '' } }, now),
  ).toEqual([]);
});
