/** @module `isogym/check`: what `isogym check` does, for an author's own test suite. Loads no tensors. */
import { importEnvironment } from '../env/load.ts';
import { makeTasks } from '../env/make-tasks.ts';
import { bundle } from '../env/sandbox/bundle.ts';
import { parseOptions } from '../io/config-problems.ts';
import { moduleUrl, resolveModulePath } from '../io/modules.ts';
import { IsogymError } from '../records/errors.ts';
import { importVerifier } from '../verifiers/load.ts';
import { VerifierPool } from '../verifiers/pool.ts';
import { checkLimits, checkOtherSeed, checkSameSeed, checkScripts, checkTabular } from './episodes.ts';
import { checkFork } from './forks.ts';
import { checkHeld } from './held.ts';
import { type Bench, checkOracle, checkVerifier } from './judgement.ts';
import { type CheckResult, failed, short } from './result.ts';
import { checkTasks } from './tasks.ts';
import { checkErrors, checkGrammar, checkSchema, drawCalls } from './tools.ts';
import { type Call, Trial } from './trial.ts';
import { checkClose, checkReset } from './worlds.ts';

export type { CheckResult } from './result.ts';

export interface CheckOptions {
  /** A built-in name, a path, or the URL of a module whose default export is an environment. */
  readonly environment: string | URL;
  /** Likewise, of a verifier. Without one nothing is judged. */
  readonly verifier?: string | URL;
  /** The environment's options, as a config has them. Default: none. */
  readonly options?: unknown;
}

export interface CheckReport {
  readonly environment: string;
  readonly verifier: string | null;
  /** Whether none has failed. */
  readonly passed: boolean;
  readonly checks: readonly CheckResult[];
}

/** Tasks that are looked at. */
const TASKS = 24;
const SEED = 'isogym-check';
/** Drawn calls of each tool that a comparison plays. */
const PLAYED = 4;

/**
 * Tries an environment, and a verifier with it, as a training run would use them, and in the ways in which such modules go wrong.
 * What is wrong is a failed check and not an error; the same modules give the same report.
 * @throws ENVIRONMENT_BROKEN, VERIFIER_BROKEN, INVALID_ENVIRONMENT, INVALID_VERIFIER, MODULE_NOT_FOUND, CONFIG_INVALID where there is nothing to try
 */
export async function checkEnvironment(o: CheckOptions): Promise<CheckReport> {
  const environment = await importEnvironment(urlOf('environment', o.environment));
  const verifierUrl = o.verifier === undefined ? undefined : urlOf('verifier', o.verifier);
  const verifier = verifierUrl === undefined ? undefined : await importVerifier(verifierUrl);
  const options = parseOptions(environment.options, o.options ?? {});
  const script = await bundle(environment.world);
  const checks: CheckResult[] = [];
  const report = (): CheckReport => ({
    environment: environment.name,
    verifier: verifier?.name ?? null,
    passed: checks.every(({ status }) => status !== 'failed'),
    checks,
  });
  let trial: Trial;
  try {
    const tasks = makeTasks(environment, { seed: SEED, from: 0, count: TASKS, options });
    checks.push(checkTasks(environment, options, SEED, tasks));
    trial = new Trial(environment, script, tasks, SEED);
  } catch (error) {
    if (!(error instanceof IsogymError)) throw error;
    // Nothing else can be tried.
    const name = error.code === 'TASK_BROKEN' ? 'tasks' : 'declaration';
    checks.push(failed(name, short(error.message), error.hint ?? "Look at the environment's declaration."));
    return report();
  }
  const engine =
    verifierUrl === undefined ? undefined : await VerifierPool.start({ verifier: verifierUrl, workers: 1 });
  try {
    const bench = verifier === undefined || engine === undefined ? undefined : { verifier, engine };
    checks.push(...(await checksOf(trial, options, bench)));
  } finally {
    trial.dispose();
    await engine?.close();
  }
  return report();
}

async function checksOf(trial: Trial, options: unknown, bench: Bench | undefined): Promise<readonly CheckResult[]> {
  const { tools, scripts } = trial.environment;
  const grammarCheck = checkGrammar(trial);
  const grammar = grammarCheck.status === 'passed' ? trial.inside.grammar : undefined;
  const opened = opens(trial);
  if (opened !== undefined) return [grammarCheck, opened];
  const drawn = drawCalls(trial);
  const played = tools.flatMap((tool) => drawn.get(tool.name)?.calls.slice(0, PLAYED) ?? []);
  const oracle = 'oracle' in scripts ? await trial.episodes({ kind: 'scripted', script: 'oracle' }) : undefined;
  const callsOf = (task: number): readonly Call[] => {
    const steps = oracle?.[task]?.steps ?? [];
    const own = steps.flatMap(({ action }) => action.calls);
    return [
      ...own.flatMap(({ name, arguments: args }) => (args === null ? [] : [{ tool: name, arguments: args }])),
      ...played,
    ];
  };
  const reset = checkReset(trial, callsOf);
  return [
    grammarCheck,
    ...tools.flatMap((tool) => [
      checkErrors(trial, tool, drawn.get(tool.name)?.calls ?? []),
      checkSchema(trial, tool, drawn.get(tool.name)?.texts ?? []),
    ]),
    await checkSameSeed(trial, grammar),
    checkOtherSeed(trial, options, played),
    reset,
    checkClose(trial, played, reset.status === 'failed'),
    // Where a reset leaks, every fork differs for that reason.
    ...(reset.status === 'failed' ? [] : [checkFork(trial, callsOf(0))]),
    await checkScripts(trial, grammar),
    await checkTabular(trial),
    checkLimits(trial, oracle),
    await checkOracle(trial, oracle, bench),
    await checkVerifier(trial, oracle, bench),
    await checkHeld(trial, grammar !== undefined),
  ];
}

/** The worlds of all tasks open, or the first that does not. */
function opens(trial: Trial): CheckResult | undefined {
  const host = trial.host();
  for (const task of trial.tasks) {
    try {
      trial.open(host, task).close();
    } catch (error) {
      if (!(error instanceof IsogymError)) throw error;
      return failed(
        'world',
        short(`task ${task.id}: ${error.message}`),
        'The world module exports as default a function that is given { public, random } and returns { tools } at once.',
      );
    }
  }
  return undefined;
}

function urlOf(kind: 'environment' | 'verifier', module: string | URL): string {
  return module instanceof URL ? module.href : moduleUrl(kind, resolveModulePath(module, process.cwd())).href;
}
