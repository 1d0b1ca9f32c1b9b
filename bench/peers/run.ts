/**
 * @module Peers and isogym on the same episodes, back to back: `npx node bench/peers/run.ts [--rounds 3] [--gymnasium PYTHON]
 * [--verifiers PYTHON]`. Writes bench/results/rollouts.json: medians over the rounds, ratios formed within each round.
 *
 * Peers whose interpreter is not named are left out, and the result says so. Their `submit` is a tool that the environment
 * scores, ours is a final answer that the verifier scores: both are counted as a step.
 */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { examine } from '../../src/io/machine.ts';
import { median } from '../../src/train/statistics.ts';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '3' }, gymnasium: { type: 'string' }, verifiers: { type: 'string' } },
});

const folder = fileURLToPath(new URL('.', import.meta.url));
const isogym = fileURLToPath(new URL('../../bin/isogym.js', import.meta.url));

type Figures = Record<string, unknown>;

/** The last line that a program prints is its figures. */
function figures(file: string, ...args: readonly string[]): Figures {
  const text = execFileSync(file, args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  return JSON.parse(text.trim().split('\n').at(-1) ?? '') as Figures;
}

function rate(from: Figures, key: string): number {
  return (from[key] as { per_s: number }).per_s;
}

/** Episodes a second of ten steps and of four, by name. */
type Rates = Record<string, { readonly ten: number; readonly four: number }>;

function round(): Rates {
  const rates: Rates = {};
  for (const processes of [1, 2]) {
    const plain = figures(process.execPath, 'plain.mjs', String(processes));
    rates[`plain Node, ${processes} process${processes > 1 ? 'es' : ''}`] = {
      ten: rate(plain, '10step_episodes'),
      four: rate(plain, '4step_episodes'),
    };
  }
  const ours = figures(
    process.execPath,
    ...[isogym, 'bench', 'rollouts', '--policies', 'oracle,survey', '--workers', '1,2', '--rounds', '3', '--json'],
  );
  const rows = ours.results as { policy: string; isolation: string; workers: number; episodesPerSecond: number }[];
  for (const isolation of ['none', 'thread', 'process']) {
    for (const workers of [1, 2]) {
      const of = (policy: string) =>
        rows.find((row) => row.policy === policy && row.isolation === isolation && row.workers === workers);
      const [ten, four] = [of('survey'), of('oracle')];
      if (ten === undefined || four === undefined) continue;
      const name =
        isolation === 'none'
          ? 'isogym, no sandbox'
          : `isogym, ${isolation}, ${workers} worker${workers > 1 ? 's' : ''}`;
      rates[name] = { ten: ten.episodesPerSecond, four: four.episodesPerSecond };
    }
  }
  if (values.gymnasium !== undefined) {
    const found = figures(values.gymnasium, 'gym.py', '0.5', 'quick').rows as (Figures & {
      kind: string;
      envs: number;
    })[];
    for (const row of found) {
      rates[`Gymnasium ${row.kind}, ${row.envs} environments`] = {
        ten: row['10step_episodes_per_s'] as number,
        four: row['4step_episodes_per_s'] as number,
      };
    }
  }
  if (values.verifiers !== undefined) {
    const found = figures(values.verifiers, 'verifiers_loop.py', 'quick');
    rates['verifiers ToolEnv, concurrency 16'] = {
      ten: rate(found, '10step_rollouts_c16'),
      four: rate(found, '4step_rollouts_c16'),
    };
  }
  return rates;
}

const loadBefore = loadavg()[0];
const rounds: Rates[] = [];
for (let i = 0; i < Number(values.rounds); i++) {
  rounds.push(round());
  // After each round, so that one that is broken off leaves what it has.
  const report = reportOf(rounds);
  writeFileSync(new URL('../results/rollouts.json', import.meta.url), `${JSON.stringify(report, null, 2)}\n`);
  console.log(JSON.stringify({ rounds: rounds.length, load: report.load, ratios: report.ratios }, null, 2));
}

function reportOf(all: readonly Rates[]) {
  const names = Object.keys(all[0] ?? {});
  const ten = (from: Rates, name: string) => from[name]?.ten ?? Number.NaN;
  const over = (a: string, b: string) =>
    names.includes(a) && names.includes(b) ? median(all.map((one) => ten(one, a) / ten(one, b))) : null;
  const one = 'isogym, process, 1 worker';
  const two = 'isogym, process, 2 workers';
  const ratios = {
    'one worker over plain Node, one process': over(one, 'plain Node, 1 process'),
    'two workers over plain Node, two processes': over(two, 'plain Node, 2 processes'),
    'two workers over one, process': over(two, one),
    'two workers over one, thread': over('isogym, thread, 2 workers', 'isogym, thread, 1 worker'),
    'process over thread, two workers': over(two, 'isogym, thread, 2 workers'),
    'two workers over Gymnasium async, 8': over(two, 'Gymnasium async, 8 environments'),
    'two workers over Gymnasium sync, 8': over(two, 'Gymnasium sync, 8 environments'),
    'two workers over verifiers': over(two, 'verifiers ToolEnv, concurrency 16'),
  };
  const results = names.map((name) => ({
    name,
    tenStepEpisodesPerSecond: median(all.map((r) => ten(r, name))),
    fourStepEpisodesPerSecond: median(all.map((r) => r[name]?.four ?? Number.NaN)),
    rounds: all.map((r) => r[name]),
  }));
  return { machine: examine(), load: { before: loadBefore, after: loadavg()[0] }, ratios, results };
}
