/**
 * @module The bench of the sandbox, as `isogym bench sandbox` measures it: resets, calls, code that a policy wrote against an
 * interpreter process for each call, and how soon a host is whole again after an attack. Clock and interpreter are arguments.
 */
import type { CreateWorld, Environment, ResetLevel } from '../env/environment.ts';
import { bundle } from '../env/sandbox/bundle.ts';
import { CODE_DEFAULTS, type CodeOutcome } from '../env/sandbox/code.ts';
import type { CodeTask } from '../env/sandbox/code-service.ts';
import { HostSupervisor } from '../env/sandbox/host/supervisor.ts';
import { WorldHost } from '../env/sandbox/world-host.ts';
import { IsogymError } from '../records/errors.ts';
import type { Json } from '../records/json.ts';
import { median } from '../train/statistics.ts';

export interface ResetFigures {
  readonly level: ResetLevel;
  readonly perSecond: number;
  /** Of opening a world and closing it, the environment's own `create` included. */
  readonly p50Ms: number;
}

export interface CallFigures {
  readonly tool: string;
  /** Median of one call through the guard, its timeout and JSON included [µs]. */
  readonly sealedUs: number;
  /** The same function called with the same JSON. */
  readonly directUs: number;
}

export interface CodeFigures {
  readonly freshContextPerSecond: number;
  readonly compiledAgainPerSecond: number;
  /** One interpreter process for each call; null where there is none. */
  readonly processPerSecond: number | null;
  readonly freshContextOverProcess: number | null;
  readonly compiledAgainOverProcess: number | null;
}

export interface RecoveryFigures {
  readonly attack: string;
  /** What the code asked for after the attack waited beyond the attack's own timeout and grace: medians [ms]. */
  readonly nextTaskMs: number;
}

export interface SandboxBenchOptions {
  readonly environment: Environment;
  /** Of the environment, validated. */
  readonly options: unknown;
  readonly rounds: number;
  readonly now: () => number;
  readonly signal: AbortSignal;
  readonly sleep: (ms: number) => Promise<void>;
  /** Runs one process of an interpreter that calls one function; undefined where there is none. */
  readonly interpreter: (() => void) | undefined;
}

const LEVELS: readonly ResetLevel[] = ['state', 'context', 'isolate'];
const LIMITS = { residentMiB: 2000, graceMs: 250, outsideMs: 10_000 };
const CODE = '(list) => list.map((x) => x * 2)';
/** Attacks that take their host down. */
const ATTACKS = {
  'native loop': '() => { const a = []; a.length = 2 ** 32 - 1; return a.lastIndexOf(5); }',
  'heap in one stroke': '() => new Array(1e9).fill(0).length',
} as const;

export async function benchResets({
  environment,
  options,
  rounds,
  now,
}: Pick<SandboxBenchOptions, 'environment' | 'options' | 'rounds' | 'now'>): Promise<readonly ResetFigures[]> {
  const { memoryMiB, code, world } = environment;
  const script = await bundle(world);
  const text = JSON.stringify(environment.task('bench', 0, options).public);
  return LEVELS.map((reset) => {
    const host = new WorldHost({ script, reset, memoryMiB, ...(code === undefined ? {} : { code }) });
    const times: number[] = [];
    const count = (reset === 'state' ? 2000 : 200) * (rounds + 1);
    for (let i = 0; i < count; i++) {
      const start = now();
      host.open(text, `bench/${i}`).close();
      times.push(now() - start);
    }
    host.dispose();
    const warm = times.slice(count / (rounds + 1));
    const total = warm.reduce((sum, ms) => sum + ms, 0);
    return { level: reset, perSecond: (1000 * warm.length) / total, p50Ms: median(warm) };
  });
}

/** One tool's call, with arguments that it takes. */
export async function benchCall(
  { environment, options, rounds, now }: SandboxBenchOptions,
  call: { readonly tool: string; readonly arguments: { readonly [key: string]: Json } },
): Promise<CallFigures> {
  const { memoryMiB, world } = environment;
  const task = environment.task('bench', 0, options);
  const text = JSON.stringify(task.public);
  const { default: create } = (await import(world.href)) as { readonly default: CreateWorld };
  const { tools } = create({ public: task.public, random: () => 0, runCode: () => [] });
  const direct = tools[call.tool] as (args: Json) => string;
  const host = new WorldHost({ script: await bundle(world), reset: 'state', memoryMiB });
  const session = host.open(text, 'bench');
  const args = JSON.stringify(call.arguments);
  const first = session.call(call.tool, args, 1000);
  if (first.status !== 'ok')
    throw new IsogymError('INTERNAL', `the bench's call of ${call.tool} came to ${first.status}`);
  const each = 20_000;
  const us = (once: () => unknown) => {
    const start = now();
    for (let i = 0; i < each; i++) once();
    return (1000 * (now() - start)) / each;
  };
  const times = Array.from({ length: rounds + 1 }, () => ({
    sealed: us(() => session.call(call.tool, args, 1000)),
    direct: us(() => direct(JSON.parse(args) as Json)),
  })).slice(1);
  host.dispose();
  return {
    tool: call.tool,
    sealedUs: median(times.map(({ sealed }) => sealed)),
    directUs: median(times.map(({ direct: one }) => one)),
  };
}

export async function benchCode({ rounds, now, interpreter }: SandboxBenchOptions): Promise<CodeFigures> {
  const supervisor = await codeHost({ ...CODE_DEFAULTS, maxRuns: 1e9, timeoutMs: 10_000 });
  const rates = { fresh: [] as number[], again: [] as number[], process: [] as number[] };
  const many = Array.from({ length: 20_000 }, (_, i) => `[${i},2,3]`);
  const perSecond = async (task: CodeTask, calls: number) => {
    const start = now();
    const { last } = await ask(supervisor, task);
    if (!last?.ok) throw new IsogymError('INTERNAL', `the bench's code failed: ${last?.message}`);
    return (1000 * calls) / (now() - start);
  };
  for (let round = 0; round <= rounds; round++) {
    const fresh = await perSecond({ code: CODE, inputs: ['[1,2,3]'], times: 500 }, 500);
    const again = await perSecond({ code: CODE, inputs: many, times: 1 }, many.length);
    const start = now();
    for (let i = 0; i < 10; i++) interpreter?.();
    const ofProcess = 10_000 / (now() - start);
    if (round === 0) continue;
    rates.fresh.push(fresh);
    rates.again.push(again);
    rates.process.push(ofProcess);
  }
  await supervisor.close();
  const over = (values: readonly number[]) =>
    interpreter === undefined ? null : median(values.map((rate, i) => rate / (rates.process[i] as number)));
  return {
    freshContextPerSecond: median(rates.fresh),
    compiledAgainPerSecond: median(rates.again),
    processPerSecond: interpreter === undefined ? null : median(rates.process),
    freshContextOverProcess: over(rates.fresh),
    compiledAgainOverProcess: over(rates.again),
  };
}

/** At rest before each attack, so that the spare host is ready, as it is but for the first moment after a death. */
export async function benchRecovery(
  o: Pick<SandboxBenchOptions, 'rounds' | 'now' | 'signal' | 'sleep'> & {
    /** Code by name. Default: two that no timeout ends. */
    readonly attacks?: Readonly<Record<string, string>>;
  },
): Promise<readonly RecoveryFigures[]> {
  const timeoutMs = 250;
  const supervisor = await codeHost({ ...CODE_DEFAULTS, maxRuns: 1e9, timeoutMs });
  const figures: RecoveryFigures[] = [];
  try {
    for (const [attack, code] of Object.entries(o.attacks ?? ATTACKS)) {
      const waits: number[] = [];
      for (let round = 0; round < o.rounds && !o.signal.aborted; round++) {
        await ask(supervisor, { code: CODE, inputs: ['[1]'], times: 1 });
        await o.sleep(1500);
        const start = o.now();
        const { died } = await ask(supervisor, { code, inputs: ['1'], times: 1 });
        const end = o.now();
        if (died === undefined) {
          throw new IsogymError(
            'INTERNAL',
            `${attack}: expected an attack that takes its host down, found that it did not`,
          );
        }
        await ask(supervisor, { code: CODE, inputs: ['[1]'], times: 1 });
        // What is not ended by its timeout has a deadline; what dies at once has none.
        const deadline = died === 'hang' ? timeoutMs + LIMITS.graceMs : end - start;
        waits.push(o.now() - start - deadline);
      }
      figures.push({ attack, nextTaskMs: median(waits) });
    }
  } finally {
    await supervisor.close();
  }
  return figures;
}

async function codeHost(limits: typeof CODE_DEFAULTS): Promise<HostSupervisor> {
  const service = new URL('../env/sandbox/code-service.ts', import.meta.url);
  const supervisor = new HostSupervisor({ service, setup: limits, limits: LIMITS, recycleAfter: 1e9 });
  await supervisor.start();
  return supervisor;
}

async function ask(
  supervisor: HostSupervisor,
  task: CodeTask,
): Promise<{ readonly last?: CodeOutcome | undefined; readonly died?: string }> {
  const answer = await supervisor.run(task, { weight: 1 });
  if ('death' in answer) return { died: answer.death.kind };
  return { last: (answer.result as readonly CodeOutcome[]).at(-1) };
}
