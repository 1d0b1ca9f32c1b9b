/** @module `isogym exercise step-penalty`: what a penalty per step makes of toy-lookup, by arithmetic and by learning, side by side. */
import { availableParallelism } from 'node:os';
import { Piscina } from 'piscina';
import { importEnvironment } from '../../env/load.ts';
import { resolveModule } from '../../env/sandbox/resolve-module.ts';
import { stopwatch } from '../../io/clock.ts';
import { loadConfig } from '../../io/config-file.ts';
import { moduleUrl } from '../../io/modules.ts';
import { table } from '../../io/table.ts';
import type { Config } from '../../train/config.ts';
import type { Reporter } from '../../train/reporter.ts';
import { bootstrapMean, type Interval } from '../../train/statistics.ts';
import { BEHAVIOURS, type Behaviour } from './behaviour.ts';
import type { Learnt } from './learn.ts';
import { isLocalOptimum, type LookupAction, optimum, successProbability } from './optimum.ts';

const CONFIG = 'toy-lookup-tabular.yaml';
const PENALTIES = [0, 0.05, 0.1, 0.15, 0.2] as const;
const SEEDS = [0, 1, 2, 3, 4] as const;
/** Facts are uniform on 1…99: toy-lookup's default. */
const VALUES = 99;

export interface PenaltyRow {
  readonly penalty: number;
  /** The best that can be done, and how. */
  readonly optimum: { readonly return: number; readonly behaviour: Behaviour; readonly path: readonly LookupAction[] };
  /** Expected returns of the three ways to answer. */
  readonly arithmetic: Readonly<Record<Exclude<Behaviour, 'other'>, number>>;
  readonly learnt: {
    /** Mean over seeds with a 95 % bootstrap interval over seeds. */
    readonly return: Interval;
    /** Seeds by what most of their episodes do. */
    readonly behaviours: Readonly<Partial<Record<Behaviour, number>>>;
    readonly bySeed: readonly Learnt[];
    /** Seeds whose behaviour is not the optimum's. */
    readonly elsewhere: number;
    /** Of these, the ones in a local optimum: with what they would do next, no other action on their path looks better. */
    readonly localOptima: number;
  };
}

export interface StepPenaltySummary {
  readonly exercise: 'step-penalty';
  readonly config: string;
  readonly seeds: readonly number[];
  readonly wallSeconds: number;
  readonly rows: readonly PenaltyRow[];
}

export async function runStepPenalty(options: {
  readonly signal: AbortSignal;
  readonly reporter: Reporter;
}): Promise<{ readonly summary: StepPenaltySummary; readonly interrupted: false; readonly text: string }> {
  const { signal, reporter } = options;
  const watch = stopwatch();
  const configs = PENALTIES.flatMap((penalty) => SEEDS.map((seed) => exerciseConfig(penalty, seed)));
  const workers = Math.min(availableParallelism(), configs.length);
  const filename = resolveModule(new URL('./learn.ts', import.meta.url)).href;
  const pool = new Piscina<Config, Learnt>({ filename, minThreads: workers, maxThreads: workers });
  reporter.note(
    `exercise step-penalty: ${CONFIG} from scratch at ${PENALTIES.length} penalties with ${SEEDS.length} seeds each, on ${workers} workers`,
  );
  let done = 0;
  let learnt: readonly Learnt[];
  try {
    learnt = await Promise.all(
      configs.map(async (config) => {
        const result = await pool.run(config, { signal });
        done++;
        const figures = {
          penalty: penaltyText(config.reward.stepPenalty),
          seed: String(config.seed),
          return: result.return,
        };
        reporter.progress({ phase: 'exercise', done, total: configs.length, figures });
        return result;
      }),
    );
  } finally {
    await pool.destroy();
  }
  const { maxSteps } = (await importEnvironment(moduleUrl('environment', 'toy-lookup').href)).limits;
  const rows = PENALTIES.map((penalty, p) =>
    rowOf(penalty, maxSteps, learnt.slice(p * SEEDS.length, (p + 1) * SEEDS.length)),
  );
  const summary = {
    exercise: 'step-penalty',
    config: CONFIG,
    seeds: SEEDS,
    wallSeconds: watch.seconds(),
    rows,
  } as const;
  return { summary, interrupted: false, text: describe(summary) };
}

function exerciseConfig(penalty: number, seed: number): Config {
  const overrides = [`reward.stepPenalty=${penalty}`, `seed=${seed}`];
  return loadConfig({ file: CONFIG, overrides, cwd: process.cwd() }).config;
}

function rowOf(penalty: number, maxSteps: number, bySeed: readonly Learnt[]): PenaltyRow {
  const best = optimum(penalty, VALUES, maxSteps);
  const behaviour = behaviourOfPath(best.path);
  const behaviours: Partial<Record<Behaviour, number>> = {};
  for (const one of bySeed) behaviours[one.behaviour] = (behaviours[one.behaviour] ?? 0) + 1;
  const guess = (knowsX: boolean) =>
    successProbability({ knowsX, knowsY: false, calculated: knowsX ? 1 : null }, VALUES);
  const elsewhere = bySeed.filter((one) => one.behaviour !== behaviour);
  return {
    penalty,
    optimum: { return: best.value, behaviour, path: best.path },
    arithmetic: {
      'full path': 1 - 4 * penalty,
      'lookup skipped': guess(true) - 3 * penalty,
      'immediate answer': guess(false) - penalty,
    },
    learnt: {
      return: bootstrapMean(
        bySeed.map((one) => one.return),
        `step-penalty/${penalty}`,
      ),
      behaviours,
      bySeed,
      elsewhere: elsewhere.length,
      localOptima: elsewhere.filter((one) => isLocalOptimum(one.policy, { penalty, values: VALUES, maxSteps })).length,
    },
  };
}

function behaviourOfPath(path: readonly LookupAction[]): Behaviour {
  const known = new Set(path.filter((action) => action === 'lookup-x' || action === 'lookup-y')).size;
  if (known === 0) return 'immediate answer';
  if (known === 1) return 'lookup skipped';
  return path.includes('calculate') ? 'full path' : 'other';
}

function penaltyText(penalty: number): string {
  return penalty.toFixed(2);
}

/** For people: the table, then where the reference text and the arithmetic part. */
function describe({ rows, seeds }: StepPenaltySummary): string {
  const number = (x: number) => x.toFixed(3);
  const lines = rows.map(({ penalty, optimum: best, arithmetic, learnt }) => [
    penaltyText(penalty),
    `${number(best.return)} ${best.behaviour}`,
    number(arithmetic['lookup skipped']),
    number(arithmetic['immediate answer']),
    `${number(learnt.return.mean)} [${number(learnt.return.low)}, ${number(learnt.return.high)}]`,
    BEHAVIOURS.flatMap((b) =>
      learnt.behaviours[b] === undefined ? [] : [`${learnt.behaviours[b]}/${seeds.length} ${b}`],
    ).join(', '),
  ]);
  const header = ['penalty', 'optimum', 'skip', 'immediate', 'learnt return', 'learnt behaviour'];
  const missed = rows.filter((row) => row.learnt.elsewhere > 0);
  const skipped = rows.reduce((sum, row) => sum + (row.learnt.behaviours['lookup skipped'] ?? 0), 0);
  const highest = rows.at(-1);
  return [
    `Facts are uniform on 1…${VALUES}; a guess is right once in ${VALUES}. Learnt: ${seeds.length} seeds, held-out tasks, sampled, mean and 95 % bootstrap interval over seeds.`,
    '',
    table(header, lines),
    '',
    `The reference text expects that at 0.2 the policy skips a lookup and guesses. Of ${rows.length * seeds.length} runs here, ${skipped} did.`,
    highest === undefined
      ? ''
      : `By the arithmetic the full path is still the optimum at ${penaltyText(highest.penalty)}: 1 − 4 × ${highest.penalty} = ${number(highest.arithmetic['full path'])}, against ${number(highest.arithmetic['lookup skipped'])} for a skipped lookup; skipping pays only where a fact can be guessed.`,
    missed.length === 0
      ? 'Every run found the optimum.'
      : missed
          .map(
            ({ penalty, learnt }) =>
              `At ${penaltyText(penalty)} ${learnt.elsewhere} of ${seeds.length} runs ended elsewhere: ${learnt.localOptima} in a local optimum (with what the policy would do next, no other action on its path looks better), ${learnt.elsewhere - learnt.localOptima} on a plateau (another action does look better, and is drawn too rarely to be learnt from soon).`,
          )
          .join('\n'),
    missed.length === 0
      ? ''
      : 'From scratch nearly every early episode fails, so what a step costs is learnt before what a lookup is worth. docs/step-penalty.md has what longer runs do.',
    'All this is over the four tabular actions: a policy that adds in its head could answer after two lookups, 1 − 3 × penalty.',
  ].join('\n');
}
