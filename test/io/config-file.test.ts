import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { loadConfig } from '../../src/io/config-file.ts';
import { IsogymError } from '../../src/records/errors.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'isogym-config-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const GOOD = `iterations: 3
environment: { module: toy-lookup }
verifier: { module: exact-answer }
policy: { kind: tabular }
batch: { groups: 2 }
group: { size: 4 }
optimizer: { learningRate: 1e-2 }
`;

function load(content: string | Uint8Array, ...overrides: string[]) {
  writeFileSync(join(folder, 'my.yaml'), content);
  return loadConfig({ file: 'my.yaml', overrides, cwd: folder });
}

function mistakes(content: string | Uint8Array, ...overrides: string[]): string {
  try {
    load(content, ...overrides);
  } catch (error) {
    if (!(error instanceof IsogymError)) throw error;
    expect(error.code).toBe('CONFIG_INVALID');
    expect(error.exitCode).toBe(2);
    return error.message;
  }
  return 'no mistake';
}

test('every kind of mistake is told at once, each at its line and column', () => {
  const text = `seed: x
seed: 3
backend: cude
workers: none
iterations: "40"
enviroment:
  module: toy-lokup
verifier: { module: exact-anwser }
policy:
  kind: transformer
  heads: 3
  layers: 0
  widht: 3
group:
  size: 2.5
batch: [1]
optimizer: { learningRate: .nan, beta1: 1 }
warmStart:
  steps: 1
  mixture: { oracle: .5, skip: .3 }
reward: &r { stepPenalty: !!float 1 }
runs: *r
name: a/b
__proto__: { a: 1 }
? [1, 2]
: 3
`;
  expect(
    mistakes(text, 'group.sise=4', 'evaluation.tasks=abc', 'toy-lookup.yaml', 'checkpoint.x.y=1', 'tasks.seed=[1'),
  ).toMatchInlineSnapshot(`
    "my.yaml:1:1 environment: expected a section of keys, found nothing
    my.yaml:1:7 seed: expected a whole number of at least 0, found "x"
    my.yaml:2:1 seed: expected each key once, found it again
    my.yaml:3:10 backend: expected one of auto, cuda, native, webgpu, wasm, cpu, found "cude" (did you mean cuda?)
    my.yaml:4:10 workers: expected a whole number from 1 to 1024, or auto, found "none"
    my.yaml:5:13 iterations: expected a whole number of at least 0, found "40" (did you mean 40?)
    my.yaml:6:1 enviroment: expected a known key, found enviroment (did you mean environment?)
    my.yaml:8:21 verifier.module: expected a built-in verifier (exact-answer, function-cases) or a path to a module, found "exact-anwser" (did you mean exact-answer?)
    my.yaml:9:1 policy.kvHeads: expected a divisor of heads (3), found 2
    my.yaml:12:11 policy.layers: expected a whole number from 1 to 1000, found 0
    my.yaml:13:3 policy.widht: expected one of kind, layers, width, heads, kvHeads, headWidth, hidden, ropeBase, temperature, found widht (did you mean width?)
    my.yaml:15:9 group.size: expected a whole number from 1 to 100000, found 2.5
    my.yaml:16:8 batch: expected a section of keys, found a list
    my.yaml:17:28 optimizer.learningRate: expected a number above 0 and of at most 1000, found NaN
    my.yaml:17:41 optimizer.beta1: expected a number of at least 0 and below 1, found 1
    my.yaml:18:1 warmStart.episodes: expected a whole number from 1 to 100000, found nothing
    my.yaml:18:1 warmStart.demonstrations: expected a whole number from 1 to 1000000, found nothing
    my.yaml:18:1 warmStart.learningRate: expected a number above 0 and of at most 1000, found nothing
    my.yaml:20:12 warmStart.mixture: expected shares that sum to 1, found 0.8
    my.yaml:21:35 reward.stepPenalty: expected a plain value, found the tag tag:yaml.org,2002:float
    my.yaml:21:35 reward.stepPenalty: expected a number from 0 to 1000000, found "1" (did you mean 1?)
    my.yaml:22:7 runs: expected the value written out, found the alias *r
    my.yaml:23:7 name: expected a text that matches ^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$, found "a/b"
    my.yaml:24:1: expected a key that is plain text, found __proto__
    my.yaml:25:3: expected a key that is plain text, found something else
    argument 1 group.sise: expected the key size, found sise (did you mean size?)
    argument 2 evaluation.tasks: expected a whole number of at least 1, found "abc"
    argument 3: expected key.path=value, found "toy-lookup.yaml" (did you mean --config toy-lookup.yaml?)
    argument 4 checkpoint.x: expected one of every, keep, found x
    argument 5 tasks.seed: expected YAML, found a mistake: flow sequence must end with a ]"
  `);
});

test('broken YAML is told together with the mistakes before it, and not with those that only follow from it', () => {
  expect(mistakes('seed: x\npolicy: { kind: tabular\nbatch: 1\n')).toMatchInlineSnapshot(`
    "my.yaml:1:7 seed: expected a whole number of at least 0, found "x"
    my.yaml:3:1: expected YAML, found a mistake: flow map in block collection must be sufficiently indented and end with a }"
  `);
  expect(mistakes('iterations: 1\ngroup:\n\tsize: 2\n')).toMatchInlineSnapshot(
    `"my.yaml:3:1: expected YAML, found a mistake: tabs are not allowed as indentation"`,
  );
  expect(mistakes('seed: "x\n')).toMatchInlineSnapshot(`
    "my.yaml:1:7 seed: expected a whole number of at least 0, found "x"
    my.yaml:2:1: expected YAML, found a mistake: missing closing "quote"
  `);
  expect(mistakes(GOOD.replace('iterations: 3', 'iterations: 3\n  x: 1'))).toMatchInlineSnapshot(`
    "my.yaml:1:13: expected YAML, found a mistake: nested mappings are not allowed in compact mappings
    my.yaml:1:13: expected YAML, found a mistake: implicit keys need to be on a single line (is there a space after the colon?)"
  `);
});

test('a file that is no config is refused in one line', () => {
  expect(mistakes('')).toMatchInlineSnapshot(`"my.yaml:1:1: expected keys and values, found an empty text"`);
  expect(mistakes('# nothing\n')).toMatchInlineSnapshot(`"my.yaml:1:1: expected keys and values, found an empty text"`);
  expect(mistakes('just text')).toMatchInlineSnapshot(`"my.yaml:1:1: expected a section of keys, found "just text""`);
  expect(mistakes('- 1\n')).toMatchInlineSnapshot(`"my.yaml:1:1: expected a section of keys, found a list"`);
  expect(mistakes(`${GOOD}---\n${GOOD}`)).toMatchInlineSnapshot(
    `"my.yaml:8:1: expected one document, found a second one"`,
  );
  expect(mistakes('['.repeat(20_000))).toMatchInlineSnapshot(`
    "my.yaml:1:1: expected a section of keys, found a list
    my.yaml:1:797: expected YAML, found a mistake: nested too deeply"
  `);
  expect(mistakes(new Uint8Array([0xff, 0xfe, 0x00]))).toMatchInlineSnapshot(
    `"my.yaml: expected a YAML file, found bytes that are not UTF-8 text"`,
  );
  expect(mistakes('a: "\u0000"')).toMatchInlineSnapshot(`"my.yaml: expected a YAML file, found a binary file"`);
  expect(mistakes(' '.repeat(2 ** 20 + 1))).toMatchInlineSnapshot(
    `"my.yaml: expected a YAML file, found 1048577 bytes: a config has at most 1048576"`,
  );
});

test('a folder and a file that is not there are refused', () => {
  mkdirSync(join(folder, 'deep'), { recursive: true });
  const message = (file: string) => {
    try {
      loadConfig({ file, overrides: [], cwd: folder });
    } catch (error) {
      return `${(error as IsogymError).code}: ${(error as IsogymError).message}`;
    }
    return 'no mistake';
  };
  expect(message('deep')).toMatchInlineSnapshot(`"CONFIG_INVALID: deep: expected a YAML file, found a folder"`);
  expect(message('toy-lokup.yaml')).toMatchInlineSnapshot(
    `"CONFIG_NOT_FOUND: expected a config file, found nothing at toy-lokup.yaml (did you mean toy-lookup.yaml?)"`,
  );
});

test('aliases that would expand without end cost nothing', () => {
  const bomb = Array.from({ length: 40 }, (_, i) => `a${i}: &a${i} [${i ? `*a${i - 1}, *a${i - 1}` : '1'}]`).join('\n');
  expect(mistakes(bomb).match(/found the alias/g)).toHaveLength(78);
});

test('overrides replace what the file says, the later one of two wins, and their values are YAML', () => {
  const { config, source } = load(
    GOOD,
    'group.size=8',
    'group.size=16',
    'seed=7',
    'policy={kind: transformer, layers: 1}',
    'environment.options.values=9',
  );
  expect(config).toMatchObject({
    seed: 7,
    group: { size: 16 },
    policy: { kind: 'transformer', layers: 1, width: 64 },
    environment: { options: { values: 9 } },
  });
  expect(source).toEqual({
    file: join(folder, 'my.yaml'),
    overrides: [
      'group.size=8',
      'group.size=16',
      'seed=7',
      'policy={kind: transformer, layers: 1}',
      'environment.options.values=9',
    ],
  });
});

test('an override that replaces a section takes over the place of what stood under it', () => {
  const file = GOOD.replace('{ kind: tabular }', '{ kind: tabular, temperature: 0 }');
  expect(mistakes(file, 'policy={kind: tabular, temperature: -1}')).toMatchInlineSnapshot(
    `"argument 1 policy.temperature: expected a number from 0.0001 to 10000, found -1"`,
  );
});

test('the prototype of nothing can be reached', () => {
  expect(mistakes(GOOD, '__proto__.polluted=1', 'environment.options.__proto__.polluted=1')).toMatchInlineSnapshot(`
    "argument 1: expected key.path=value, found "__proto__.polluted=1"
    argument 2: expected key.path=value, found "environment.options.__proto__.polluted=1""
  `);
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
});

test('a run is named by its config, its config file, or neither', () => {
  expect(load(GOOD).config.name).toBe('my');
  expect(load(`${GOOD}name: other\n`).config.name).toBe('other');
  const overrides = GOOD.trimEnd()
    .split('\n')
    .map((line) => line.replace(': ', '='));
  expect(loadConfig({ overrides, cwd: folder }).config.name).toBe('run');
});

test('a module of the user is found from the file that names it, and from the working folder where an argument does', () => {
  mkdirSync(join(folder, 'sub'), { recursive: true });
  writeFileSync(join(folder, 'sub', 'world.ts'), '');
  writeFileSync(join(folder, 'verifier.ts'), '');
  writeFileSync(join(folder, 'sub', 'run.yaml'), GOOD.replace('toy-lookup', './world.ts'));
  const { config } = loadConfig({ file: 'sub/run.yaml', overrides: ['verifier.module=verifier.ts'], cwd: folder });
  expect(config.environment.module).toBe(join(folder, 'sub', 'world.ts'));
  expect(config.verifier.module).toBe(join(folder, 'verifier.ts'));
  expect(mistakes(GOOD, 'environment.module=./nowhere.ts', 'verifier.module=exact-anwser')).toMatchInlineSnapshot(`
    "argument 1 environment.module: expected a path to a module, found nothing at "./nowhere.ts"
    argument 2 verifier.module: expected a built-in verifier (exact-answer, function-cases) or a path to a module, found "exact-anwser" (did you mean exact-answer?)"
  `);
});

test('a bare name is looked for in the working folder first, then among the configs of the package', () => {
  expect(loadConfig({ file: 'toy-lookup.yaml', overrides: [], cwd: folder }).config.policy.kind).toBe('transformer');
  writeFileSync(join(folder, 'toy-lookup.yaml'), GOOD);
  expect(loadConfig({ file: 'toy-lookup.yaml', overrides: [], cwd: folder }).config.policy.kind).toBe('tabular');
});

test('what was resolved can be run again', () => {
  const { config } = load(GOOD, 'seed=5');
  expect(load(stringify(config)).config).toEqual(config);
});

test('a text that asks to be read by other rules than those of YAML 1.2 is refused', () => {
  expect(mistakes(`%YAML 1.1\n---\n${GOOD}`)).toBe('my.yaml:1:1: expected YAML 1.2, found %YAML 1.1');
  expect(mistakes(`%YAML 1.2\n---\n${GOOD}`)).toBe('no mistake');
});

test('a module must be a file', () => {
  expect(mistakes(GOOD, 'environment.module=./')).toBe(
    'argument 1 environment.module: expected a path to a module, found a folder at "./"',
  );
  expect(mistakes(GOOD, 'verifier.module="./a\\0b.ts"')).toMatch('found nothing at');
});

test('a module must be one of TypeScript or JavaScript', () => {
  writeFileSync(join(folder, 'data.yaml'), 'x: 1\n');
  expect(mistakes(GOOD, 'environment.module=./data.yaml')).toBe(
    'argument 1 environment.module: expected a path to a module of TypeScript or JavaScript (.ts, .js, .mjs, …), found "./data.yaml"',
  );
});

test('a number that cannot be told from its neighbours is refused as such', () => {
  expect(mistakes(GOOD, 'seed=9007199254740993')).toMatch('found 9007199254740992, beyond ±(2^53 − 1)');
});

test('an alias is one mistake, not two, and what stands beside it is told too', () => {
  const text = `seed: &s 1\n${GOOD.replace('iterations: 3', 'iterations: *s')}`;
  expect(mistakes(text)).toBe('my.yaml:2:13 iterations: expected the value written out, found the alias *s');
});

test('thousands of mistakes are cut to what a person reads, and counted', () => {
  const lines = mistakes(Array.from({ length: 3000 }, (_, i) => `k${i}: 1\n`).join('')).split('\n');
  expect(lines).toHaveLength(201);
  expect(lines.at(-1)).toBe('… and 2807 more');
});
