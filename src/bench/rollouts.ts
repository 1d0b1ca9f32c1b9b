/**
 * @module The bench of rollouts, as `isogym bench rollouts` measures it: whole episodes through a pool and a verifier, beside
 * the same loop without a sandbox (`loop-bench.ts`). All of them take turns, so that ratios hold on a busy machine. The clock
 * is an argument.
 */
import type { Environment, Isolation, ResetLevel } from '../env/environment.ts';
import { importEnvironment } from '../env/load.ts';
import { RolloutPool } from '../env/rollouts/pool.ts';
import type { PolicySpec } from '../env/rollouts/rollouts.ts';
import type { Task } from '../records/task.ts';
import type { Trajectory } from '../records/trajectory.ts';
import { collect, groupRequests, type Rig } from '../train/collect.ts';
import { median, percentile } from '../train/statistics.ts';
import { usableOnly } from '../train/usable.ts';
import { importVerifier } from '../verifiers/load.ts';
import { VerifierPool } from '../verifiers/pool.ts';
import { LoopBench, type LoopFigures, type LoopPass, loopFigures } from './loop.ts';

/** One way to run the episodes of one policy. */
export interface RolloutFigures {
  readonly environment: string;
  readonly policy: string;
  /** `none`: the world is called directly. */
  readonly reset: ResetLevel | 'none';
  /** `none`: in one thread, with no sandbox. */
  readonly isolation: Isolation | 'none';
  readonly workers: number;
  /** Mean of an episode, the final answer counted. */
  readonly steps: number;
  readonly episodesPerSecond: number;
  readonly stepsPerSecond: number;
  readonly toolCallsPerSecond: number;
  /** Tokens that a policy outside the workers sampled; null where it acts inside them. */
  readonly sampledTokensPerSecond: number | null;
  /** Its rate over that of the loop without a sandbox, one of those for each worker; null where the policy acts outside the workers. */
  readonly relativeToUnsealed: number | null;
  /** Of one episode asked for alone, until it has been judged. */
  readonly latencyMs: { readonly p50: number; readonly p95: number; readonly p99: number };
  /** Of the calling process and the hosts that it owns [µs]: less shaken by others on the machine than the rates. */
  readonly cpuUsPerEpisode: number;
  /** Share of the time in which the workers had a task in hand, in [0, 1]; null without workers. */
  readonly utilisation: number | null;
}

export interface RolloutBenchOptions {
  /** Absolute URLs of the modules. */
  readonly environment: string;
  readonly verifier: string;
  /** Of the environment, validated. */
  readonly options: unknown;
  readonly policies: readonly { readonly name: string; readonly spec: PolicySpec }[];
  readonly maxSteps: number | undefined;
  readonly reset: ResetLevel;
  readonly isolations: readonly Isolation[];
  readonly workers: readonly number[];
  /** Of one measurement; a policy outside the workers gets a tenth of them. */
  readonly episodes: number;
  /** Measurements of each figure, of which the median stands. */
  readonly rounds: number;
  readonly now: () => number;
  /** Time computed so far by this process and those that it has started [ms]. */
  readonly cpuMs: () => number;
  readonly signal: AbortSignal;
  readonly note: (text: string) => void;
}

/** Episodes asked for alone, for the latencies. */
const ALONE = 200;

interface Place {
  readonly isolation: Isolation;
  readonly workers: number;
  readonly pool: RolloutPool;
  readonly rig: Rig;
}

export async function benchRollouts(
  o: RolloutBenchOptions,
): Promise<{ readonly results: readonly RolloutFigures[]; readonly loop: readonly LoopFigures[] }> {
  const environment = await importEnvironment(o.environment);
  const verifier = await importVerifier(o.verifier);
  const places: Place[] = [];
  const loop = await LoopBench.create(environment, verifier, o);
  // Before anything is started for them.
  for (const { spec } of o.policies) if (spec.kind !== 'tokens') loop?.check(spec);
  const verifiers = await VerifierPool.start({ verifier: o.verifier, workers: 1 });
  try {
    for (const isolation of o.isolations) {
      for (const workers of o.workers) {
        const maxSteps = o.maxSteps === undefined ? {} : { maxSteps: o.maxSteps };
        const setup = { environment: o.environment, options: o.options, ...maxSteps };
        const pool = await RolloutPool.start({ ...setup, reset: o.reset, isolation, workers, now: o.now });
        places.push({ isolation, workers, pool, rig: { rollouts: pool, verifiers, verifier, stepPenalty: 0.05 } });
      }
    }
    const results: RolloutFigures[] = [];
    const loops: LoopFigures[] = [];
    for (const policy of o.policies) {
      o.note(policy.name);
      const { rows, figures } = await benchPolicy(policy, environment, places, loop, o);
      results.push(...rows);
      if (figures !== undefined) loops.push(figures);
    }
    return { results, loop: loops };
  } finally {
    loop?.close();
    await Promise.all([verifiers.close(), ...places.map(({ pool }) => pool.close())]);
  }
}

async function benchPolicy(
  { name, spec }: RolloutBenchOptions['policies'][number],
  environment: Environment,
  places: readonly Place[],
  loop: LoopBench | undefined,
  o: RolloutBenchOptions,
): Promise<{ readonly rows: readonly RolloutFigures[]; readonly figures: LoopFigures | undefined }> {
  const { now, cpuMs, rounds, signal } = o;
  const count = spec.kind === 'tokens' ? Math.max(1, Math.round(o.episodes / 10)) : o.episodes;
  const tasks = Array.from({ length: count }, (_, index) => environment.task('bench', index, o.options));
  const passes: LoopPass[] = [];
  const rates = places.map(
    (): { seconds: number[]; cpu: number[]; busy: number[]; episodes: readonly Trajectory[] } => ({
      seconds: [],
      cpu: [],
      busy: [],
      episodes: [],
    }),
  );
  // The first round warms up and is not counted.
  for (let round = 0; round <= rounds; round++) {
    if (spec.kind !== 'tokens' && loop !== undefined) {
      const pass = await loop.pass(spec, tasks, `bench/${round}`);
      if (round > 0) passes.push(pass);
    }
    for (const [i, { pool, rig }] of places.entries()) {
      const requests = groupRequests(tasks, 1, 'bench', round);
      const busy = pool.busyMs;
      const cpu = cpuMs();
      const start = now();
      const episodes = await collect(rig, requests, tasks, spec, signal);
      const seconds = (now() - start) / 1000;
      const rate = rates[i];
      if (round === 0 || rate === undefined) continue;
      rate.seconds.push(seconds);
      rate.cpu.push(cpuMs() - cpu);
      rate.busy.push(pool.busyMs - busy);
      rate.episodes = episodes;
    }
  }
  const unsealed = passes.length === 0 ? undefined : median(passes.map((pass) => pass.unsealedMs));
  const rows: RolloutFigures[] = [];
  if (loop !== undefined && unsealed !== undefined && passes[0] !== undefined && spec.kind !== 'tokens') {
    const latencies = await alone(tasks, now, (task, i) => loop.one(spec, task, `alone/${i}`));
    const counted = countsOf(passes[0].episodes);
    rows.push({
      ...{ environment: environment.name, policy: name, reset: 'none', isolation: 'none', workers: 1 },
      ...perSecond(counted, unsealed / 1000, spec),
      relativeToUnsealed: 1,
      latencyMs: latencies,
      cpuUsPerEpisode: (1000 * median(passes.map((pass) => pass.unsealedCpuMs))) / count,
      utilisation: null,
    });
  }
  for (const [i, { isolation, workers, rig }] of places.entries()) {
    const { seconds, cpu, busy, episodes } = rates[i] as (typeof rates)[number];
    // Rates of episodes that come to nothing are no rates; NO_USABLE_ROLLOUT where all of them do.
    const usable = usableOnly(episodes).length;
    if (usable < episodes.length) {
      const where = `${isolation}, ${workers} workers`;
      o.note(`${name} (${where}): ${episodes.length - usable} of ${episodes.length} episodes failed or have no score`);
    }
    const typical = median(seconds);
    const all = seconds.reduce((sum, s) => sum + s, 0);
    const latencyMs = await alone(tasks, now, (task, at) =>
      collect(rig, groupRequests([task], 1, 'alone', at), [task], spec, signal),
    );
    rows.push({
      ...{ environment: environment.name, policy: name, reset: o.reset, isolation, workers },
      ...perSecond(countsOf(episodes), typical, spec),
      relativeToUnsealed: unsealed === undefined ? null : unsealed / 1000 / (typical * workers),
      latencyMs,
      cpuUsPerEpisode: (1000 * median(cpu)) / count,
      utilisation: Math.min(1, busy.reduce((sum, ms) => sum + ms, 0) / (1000 * all * workers)),
    });
  }
  return { rows, figures: passes.length === 0 ? undefined : loopFigures(name, passes) };
}

async function alone(
  tasks: readonly Task[],
  now: () => number,
  one: (task: Task, i: number) => unknown,
): Promise<RolloutFigures['latencyMs']> {
  const times: number[] = [];
  for (let i = 0; i < ALONE; i++) {
    const start = now();
    await one(tasks[i % tasks.length] as Task, i);
    times.push(now() - start);
  }
  return { p50: median(times), p95: percentile(times, 0.95), p99: percentile(times, 0.99) };
}

interface Counts {
  readonly episodes: number;
  readonly steps: number;
  readonly calls: number;
  readonly tokens: number;
}

/** Of what came of one pass; the passes of one policy do the same. */
function countsOf(episodes: readonly Trajectory[]): Counts {
  const sum = (each: (episode: Trajectory) => number) => episodes.reduce((total, one) => total + each(one), 0);
  return {
    episodes: episodes.length,
    steps: sum(({ steps }) => steps.length),
    calls: sum(({ steps }) =>
      steps.reduce((total, { calls }) => total + calls.filter(({ attempts }) => attempts > 0).length, 0),
    ),
    tokens: sum(({ segments }) =>
      segments.reduce((total, { actionMask }) => total + actionMask.filter(Boolean).length, 0),
    ),
  };
}

function perSecond({ episodes, steps, calls, tokens }: Counts, seconds: number, spec: PolicySpec) {
  return {
    steps: steps / episodes,
    episodesPerSecond: episodes / seconds,
    stepsPerSecond: steps / seconds,
    toolCallsPerSecond: calls / seconds,
    sampledTokensPerSecond: spec.kind === 'tokens' ? tokens / seconds : null,
  };
}
