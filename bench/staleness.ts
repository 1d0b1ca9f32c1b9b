/**
 * @module What it brings to roll out while the last rollouts are learnt from: runs of a config with `rollouts.staleness` 0 and 1, by turns, on
 * several seeds. `npx node bench/staleness.ts [--config toy-lookup.yaml] [--backend native] [--seeds 0,1,2,3,4] [override…]`: prints one JSON object.
 * Seconds are of the iterations alone, without warm start and evaluation.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { examine } from '../src/io/machine.ts';
import type { Timings } from '../src/train/figures.ts';
import { median } from '../src/train/statistics.ts';
import type { Summary } from '../src/train/summary.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    config: { type: 'string', default: 'toy-lookup.yaml' },
    backend: { type: 'string', default: 'native' },
    seeds: { type: 'string', default: '0,1,2,3,4' },
  },
});
const BIN = join(import.meta.dirname, '..', 'bin', 'isogym.js');
const folder = mkdtempSync(join(tmpdir(), 'isogym-staleness-'));

interface Result {
  readonly seed: number;
  readonly staleness: 0 | 1;
  readonly wallSeconds: number;
  readonly rolloutSeconds: number;
  readonly updateSeconds: number;
  readonly overlapSeconds: number;
  /** What all iterations took. */
  readonly iterationSeconds: number;
  readonly success: number | undefined;
  readonly sampledSuccess: number | undefined;
}

function run(seed: number, staleness: 0 | 1): Result {
  const name = `${seed}-${staleness}`;
  const more = [`backend=${values.backend}`, `seed=${seed}`, `rollouts.staleness=${staleness}`, `name=${name}`];
  const args = [BIN, 'train', '--config', values.config, '--json', `runs.dir=${folder}`, ...more, ...positionals];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', maxBuffer: 2 ** 26 });
  if (status !== 0) throw new Error(`seed ${seed}, staleness ${staleness} ended with ${status}:\n${stderr}`);
  const { policies, wallSeconds } = JSON.parse(stdout) as Summary;
  const timings = readFileSync(join(folder, name, 'timings.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Timings);
  const sum = (of: (timing: Timings) => number) => timings.reduce((total, timing) => total + of(timing), 0);
  const rolloutSeconds = sum((timing) => timing.rolloutSeconds);
  const updateSeconds = sum((timing) => timing.updateSeconds);
  const overlapSeconds = sum((timing) => timing.overlapSeconds ?? 0);
  const trained = policies.find((policy) => policy.name === 'trained');
  return {
    ...{ seed, staleness, wallSeconds, rolloutSeconds, updateSeconds, overlapSeconds },
    iterationSeconds: rolloutSeconds + updateSeconds - overlapSeconds,
    success: trained?.success.mean,
    sampledSuccess: trained?.sampledSuccess.mean,
  };
}

try {
  const loadBefore = loadavg()[0];
  const results = values.seeds.split(',').flatMap((seed) => [run(Number(seed), 0), run(Number(seed), 1)]);
  const of = (staleness: 0 | 1, value: (result: Result) => number | undefined) =>
    results.filter((result) => result.staleness === staleness).map((result) => value(result) ?? Number.NaN);
  const pairs = of(1, ({ iterationSeconds }) => iterationSeconds).map(
    (seconds, i) => seconds / (of(0, ({ iterationSeconds }) => iterationSeconds)[i] ?? Number.NaN),
  );
  const load = { before: loadBefore, after: loadavg()[0] };
  const { config, backend } = values;
  const out = { machine: examine(), load, config, backend, overrides: positionals, results, ratio: median(pairs) };
  console.log(JSON.stringify(out, null, 2));
} finally {
  rmSync(folder, { recursive: true });
}
