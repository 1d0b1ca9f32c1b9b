import { expect, test } from 'vitest';
import { jsonSchema, type SchemaNode } from '../../src/io/expectation.ts';
import { configSchema } from '../../src/train/config.ts';

const minimal = {
  iterations: 1,
  environment: { module: 'toy-lookup' },
  verifier: { module: 'exact-answer' },
  policy: { kind: 'transformer' },
  batch: { groups: 2 },
  group: { size: 2 },
  optimizer: { learningRate: 0.001 },
};

const pathsOf = (data: unknown) =>
  configSchema.safeParse(data).error?.issues.map((issue) => issue.path.join('.')) ?? [];

test('a config with the required keys alone gets every default', () => {
  expect(configSchema.parse(minimal)).toMatchInlineSnapshot(`
    {
      "algorithm": {
        "baseline": "group-mean",
        "clipHigh": 0.2,
        "clipLow": 0.2,
        "entropy": 0,
        "epochs": 1,
        "estimator": "grpo",
        "gamma": 1,
        "kl": 0,
        "scale": "group-std",
      },
      "backend": "auto",
      "batch": {
        "groups": 2,
        "microTokens": 16384,
      },
      "checkpoint": {
        "every": 10,
        "keep": 2,
      },
      "environment": {
        "module": "toy-lookup",
        "options": {},
      },
      "evaluation": {
        "every": 0,
        "tasks": 500,
      },
      "group": {
        "size": 2,
      },
      "iterations": 1,
      "optimizer": {
        "beta1": 0.9,
        "beta2": 0.95,
        "clipNorm": 1,
        "decay": 0,
        "epsilon": 1e-8,
        "learningRate": 0.001,
        "warmup": 0,
        "weightDecay": 0,
      },
      "policy": {
        "headWidth": 16,
        "heads": 4,
        "hidden": 172,
        "kind": "transformer",
        "kvHeads": 2,
        "layers": 2,
        "ropeBase": 10000,
        "temperature": 1,
        "width": 64,
      },
      "replay": true,
      "reward": {
        "stepPenalty": 0,
      },
      "rollouts": {
        "extra": 0,
        "live": 512,
        "mode": "deterministic",
        "staleness": 0,
      },
      "runs": {
        "dir": "runs",
      },
      "seed": 0,
      "tasks": {
        "heldOut": 500,
        "seed": 0,
        "train": 2000,
      },
      "verifier": {
        "module": "exact-answer",
      },
      "workers": "auto",
    }
  `);
});

test('a resolved config is a config again, with the same values', () => {
  const resolved = configSchema.parse(minimal);
  expect(configSchema.parse(JSON.parse(JSON.stringify(resolved)))).toEqual(resolved);
});

test('every section refuses a key that it does not know', () => {
  const sections = [
    'tasks',
    'policy',
    'algorithm',
    'batch',
    'group',
    'optimizer',
    'reward',
    'evaluation',
    'checkpoint',
    'runs',
    'environment',
    'verifier',
  ];
  const resolved: Record<string, unknown> = configSchema.parse(minimal);
  for (const section of sections) {
    expect(pathsOf({ ...resolved, [section]: { ...(resolved[section] as object), stranger: 1 } })).toEqual([section]);
  }
  expect(pathsOf({ ...resolved, stranger: 1 })).toEqual(['']);
});

test('every key says what it means', () => {
  const silent: string[] = [];
  const walk = (node: SchemaNode, path: string) => {
    for (const variant of node.oneOf ?? []) walk(variant, path);
    for (const [key, child] of Object.entries(node.properties ?? {})) {
      if (!child.description) silent.push(`${path}.${key}`);
      walk(child, `${path}.${key}`);
    }
  };
  walk(jsonSchema(configSchema), '');
  expect(silent).toEqual([]);
});

test('checks between keys are told at the key that has to change, beside every other mistake', () => {
  const warmStart = { steps: 1, episodes: 1, demonstrations: 1, learningRate: 1, mixture: { oracle: 0.3, skip: 0.35 } };
  const policy = { kind: 'transformer', heads: 3, headWidth: 5, layers: 0 };
  expect(pathsOf({ ...minimal, policy, warmStart })).toEqual([
    'policy.layers',
    'policy.headWidth',
    'policy.kvHeads',
    'warmStart.mixture',
  ]);
});

test('shares that sum to 1 up to rounding are accepted', () => {
  const mixture = { a: 0.1, b: 0.2, c: 0.7 };
  const warmStart = { steps: 1, episodes: 1, demonstrations: 1, learningRate: 1, mixture };
  expect(pathsOf({ ...minimal, warmStart })).toEqual([]);
});

test('numbers that are none, and counts below 1, are refused', () => {
  expect(pathsOf({ ...minimal, optimizer: { learningRate: Number.NaN } })).toEqual(['optimizer.learningRate']);
  expect(pathsOf({ ...minimal, optimizer: { learningRate: Number.POSITIVE_INFINITY } })).toEqual([
    'optimizer.learningRate',
  ]);
  expect(pathsOf({ ...minimal, seed: 2 ** 53 })).toEqual(['seed']);
  expect(pathsOf({ ...minimal, group: { size: 0 }, workers: 0 })).toEqual(['workers', 'group.size']);
});

test('numbers that 32 bits do not hold, or that overflow them soon, are refused', () => {
  const refused = (change: object) => pathsOf({ ...minimal, ...change });
  const rates = { learningRate: 1e39, epsilon: 1e-320, clipNorm: 1e30, weightDecay: 1e39 };
  expect(refused({ optimizer: rates }).sort()).toEqual(
    Object.keys(rates)
      .map((key) => `optimizer.${key}`)
      .sort(),
  );
  expect(refused({ policy: { kind: 'tabular', temperature: 1e-300 } })).toEqual(['policy.temperature']);
  expect(refused({ reward: { stepPenalty: 1e308 } })).toEqual(['reward.stepPenalty']);
  expect(refused({ algorithm: { entropy: 1e300, kl: 1e300, clipHigh: 1e300 } })).toHaveLength(3);
});

test('a weight decay that turns the weights over is refused', () => {
  expect(pathsOf({ ...minimal, optimizer: { learningRate: 0.1, weightDecay: 10 } })).toEqual([]);
  expect(pathsOf({ ...minimal, optimizer: { learningRate: 0.1, weightDecay: 10.1 } })).toEqual([
    'optimizer.weightDecay',
  ]);
});

test('a rollout that has no other to be compared with is refused: it would teach nothing', () => {
  const algorithm = (baseline: string) => ({ estimator: 'reinforce', baseline, scale: 'none' });
  for (const baseline of ['group-mean', 'leave-one-out']) {
    expect(pathsOf({ ...minimal, algorithm: algorithm(baseline), group: { size: 1 } })).toEqual(['group.size']);
  }
  const alone = { group: { size: 1 }, batch: { groups: 1 } };
  expect(pathsOf({ ...minimal, ...alone, algorithm: algorithm('batch-mean') })).toEqual(['group.size']);
  expect(pathsOf({ ...minimal, ...alone, algorithm: algorithm('none') })).toEqual([]);
  expect(pathsOf({ ...minimal, group: { size: 1 }, algorithm: algorithm('batch-mean') })).toEqual([]);
});

test('counts that would end in a process killed for its memory are refused', () => {
  for (const slip of [
    { tasks: { train: 1e8 } },
    { tasks: { heldOut: 1e8 } },
    { batch: { groups: 1e9 } },
    { group: { size: 1e9 } },
    { batch: { groups: 1e4 }, group: { size: 1e3 } },
    { policy: { kind: 'transformer', width: 1e8 } },
    { policy: { kind: 'transformer', layers: 1e6 } },
    { policy: { kind: 'transformer', heads: 1e5, kvHeads: 1e5, headWidth: 1e5 } },
  ]) {
    expect(pathsOf({ ...minimal, ...slip }), JSON.stringify(slip)).toHaveLength(1);
  }
});
