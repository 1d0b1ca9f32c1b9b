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
  ['--passes', '0'],
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

test('bench train: one object, every figure of a step and of decoding', () => {
  const small = ['--rows', '1', '--length', '8', '--decode', '1,2', '--seconds', '0.001', '--passes', '1'];
  const { code, stdout } = isogym(
    tmpdir(),
    'bench',
    'train',
    '--backend',
    'wasm',
    '--mode',
    'eager',
    ...small,
    '--json',
  );
  expect(code).toBe(0);
  const { results } = figures(stdout);
  expect(results).toHaveLength(1);
  const [result] = results!;
  expect(result).toMatchObject({ backend: 'wasm', mode: 'eager', parameters: 428_672, rows: 1, length: 8, passes: 1 });
  expect(result).toMatchObject({ paddingShare: 0, tensorsLeaked: 0, decode: [{ rows: 1 }, { rows: 2 }] });
  const { trainStepMs, operationsPerStep, memoryMiB, decode } = result as Record<string, number> & {
    readonly decode: readonly { readonly msPerToken: number }[];
  };
  const measured = [trainStepMs, operationsPerStep, memoryMiB, ...decode.map(({ msPerToken }) => msPerToken)];
  for (const figure of measured) expect(figure).toBeGreaterThan(0);
});

const figures = (text: string) => JSON.parse(text) as Record<string, Record<string, unknown>[]>;

test('bench rollouts: one object, a row for each way, the loop without a sandbox among them', () => {
  const ways = ['--policies', 'survey,tabular', '--isolation', 'thread', '--workers', '1', '--max-steps', '10'];
  const { code, stdout } = isogym(
    tmpdir(),
    'bench',
    'rollouts',
    ...ways,
    '--episodes',
    '20',
    '--rounds',
    '1',
    '--json',
  );
  expect(code).toBe(0);
  const { results, resets, loop } = figures(stdout);
  expect(results?.map((row) => [row.policy, row.isolation, row.reset])).toEqual([
    ['survey', 'none', 'none'],
    ['survey', 'thread', 'state'],
    ['tabular', 'none', 'none'],
    ['tabular', 'thread', 'state'],
  ]);
  for (const row of results ?? []) {
    expect(row).toMatchObject({ environment: 'toy-lookup', workers: 1, sampledTokensPerSecond: null });
    for (const rate of [
      'episodesPerSecond',
      'stepsPerSecond',
      'toolCallsPerSecond',
      'relativeToUnsealed',
      'cpuUsPerEpisode',
    ]) {
      expect(row[rate]).toBeGreaterThan(0);
    }
    expect(Object.keys(row.latencyMs as object)).toEqual(['p50', 'p95', 'p99']);
  }
  // Nine lookups and the answer.
  const [direct, sealed] = results ?? [];
  for (const row of [direct, sealed]) {
    expect(row?.steps).toBe(10);
    expect((row?.toolCallsPerSecond as number) / (row?.episodesPerSecond as number)).toBeCloseTo(9);
  }
  expect(resets?.map(({ level }) => level)).toEqual(['state', 'context', 'isolate']);
  for (const { share } of loop ?? []) {
    const { policy, tool, orchestration } = share as Record<string, number>;
    expect(policy! + tool! + orchestration!).toBeCloseTo(1, 1);
  }
}, 30_000);

test('bench sandbox: resets, calls, code and recovery', () => {
  const { code, stdout } = isogym(tmpdir(), 'bench', 'sandbox', '--rounds', '1', '--against', 'node', '--json');
  expect(code).toBe(0);
  const { resets, calls, code: ran, recovery } = figures(stdout);
  expect(resets).toHaveLength(3);
  expect(calls?.[0]).toMatchObject({ tool: 'lookup' });
  const rates = ran as unknown as Record<string, number>;
  for (const rate of [
    'freshContextPerSecond',
    'compiledAgainPerSecond',
    'processPerSecond',
    'freshContextOverProcess',
  ]) {
    expect(rates[rate]).toBeGreaterThan(0);
  }
  expect(recovery?.map(({ attack }) => attack)).toEqual(['native loop', 'heap in one stroke']);
}, 60_000);

test('a policy that the environment has not is refused, and those that there are are named', () => {
  const { code, stdout } = isogym(tmpdir(), 'bench', 'rollouts', '--policies', 'tabula', '--episodes', '1', '--json');
  expect(code).toBe(2);
  expect(JSON.parse(stdout).error).toEqual({
    code: 'UNKNOWN_SCRIPT',
    message:
      'expected a script of toy-lookup or another policy (oracle, skip, immediate, survey, uniform, tabular, transformer), found "tabula"',
    hint: 'did you mean tabular?',
  });
}, 30_000);
