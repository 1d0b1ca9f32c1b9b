/** @module `isogym bench rollouts`: whole episodes a second, through workers and a verifier, beside the same loop without a sandbox. */
import { availableParallelism } from 'node:os';
import { Command } from 'commander';
import type { RolloutFigures } from '../bench/rollouts.ts';
import type { Isolation, ResetLevel } from '../env/environment.ts';
import { listOf, oneOf, whole } from './bench-options.ts';
import { JSON_OPTION, type LongCommand, type Outcome, runLong } from './session.ts';

interface Flags {
  readonly environment: string;
  readonly verifier: string;
  readonly policies: readonly string[];
  readonly maxSteps: number;
  readonly reset: ResetLevel;
  readonly isolation: readonly Isolation[];
  readonly workers?: readonly number[];
  readonly episodes: number;
  readonly rounds: number;
  readonly json?: boolean;
}

export function benchRolloutsCommand(): Command {
  return new Command('rollouts')
    .description('Time whole episodes: sealed, in workers, validated, judged; and the same without a sandbox.')
    .option('--environment <module>', 'a built-in or a path', 'toy-lookup')
    .option('--verifier <module>', 'a built-in or a path', 'exact-answer')
    .option(
      '--policies <names>',
      "by comma: the environment's scripts, uniform, tabular, transformer",
      listOf((name) => name),
      ['oracle', 'survey', 'tabular', 'transformer'],
    )
    .option('--max-steps <n>', 'steps of an episode at most', whole, 10)
    .option('--reset <level>', 'state, context or isolate', oneOf(['state', 'context', 'isolate']), 'state')
    .option('--isolation <kinds>', 'thread, process, or both by comma', listOf(oneOf(['thread', 'process'])), [
      'thread',
      'process',
    ])
    .option('--workers <counts>', 'by comma; 1 and the number of cores unless told', listOf(whole))
    .option('--episodes <n>', 'of one measurement', whole, 20_000)
    .option('--rounds <n>', 'measurements, of which the median stands', whole, 5)
    .option(...JSON_OPTION)
    .action((flags: Flags) => runLong(flags.json === true, (run) => benchRollouts(flags, run)));
}

async function benchRollouts(flags: Flags, { reporter, signal }: LongCommand): Promise<Outcome> {
  const { moduleUrl } = await import('../io/modules.ts');
  const { importEnvironment } = await import('../env/load.ts');
  const { benchRollouts: measure } = await import('../bench/rollouts.ts');
  const { benchResets } = await import('../bench/sandbox.ts');
  const { benchPolicies } = await import('../bench/policies.ts');
  const { parseOptions } = await import('../io/config-problems.ts');
  const { examine } = await import('../io/machine.ts');
  const { now } = await import('../io/clock.ts');
  const { cpuMs } = await import('../io/cpu-time.ts');
  const url = moduleUrl('environment', flags.environment).href;
  const environment = await importEnvironment(url);
  const note = (text: string) => reporter.note(text);
  const options = parseOptions(environment.options, {});
  const { policies, backend } = await benchPolicies(flags.policies, environment, note);
  const { results, loop } = await measure({
    environment: url,
    verifier: moduleUrl('verifier', flags.verifier).href,
    options,
    policies,
    maxSteps: flags.maxSteps,
    reset: flags.reset,
    isolations: flags.isolation,
    workers: flags.workers ?? [...new Set([1, availableParallelism()])],
    episodes: flags.episodes,
    rounds: flags.rounds,
    now,
    cpuMs,
    signal,
    note,
  });
  const resets = await benchResets({ environment, options, rounds: flags.rounds, now });
  const summary = { machine: { ...examine(), device: backend?.device ?? null }, results, resets, loop };
  const { table } = await import('../io/table.ts');
  const figure = (n: number | null, digits = 0) => (n === null ? '-' : n.toFixed(digits));
  const text = [
    table(
      [
        ...['policy', 'steps', 'reset', 'isolation', 'workers', 'episodes/s', 'steps/s', 'calls/s', 'tokens/s'],
        ...['of unsealed', 'cpu µs', 'p50 ms', 'p95 ms', 'p99 ms', 'busy'],
      ],
      results.map((r) => [
        ...[r.policy, r.steps.toFixed(1), r.reset, r.isolation, String(r.workers), figure(r.episodesPerSecond)],
        ...[figure(r.stepsPerSecond), figure(r.toolCallsPerSecond), figure(r.sampledTokensPerSecond)],
        ...[
          figure(r.relativeToUnsealed, 2),
          figure(r.cpuUsPerEpisode),
          figure(r.latencyMs.p50, 2),
          figure(r.latencyMs.p95, 2),
        ],
        ...[figure(r.latencyMs.p99, 2), figure(r.utilisation, 2)],
      ]),
    ),
    table(
      ['in one thread', 'direct µs/step', 'sealed µs/step', 'sealing', 'orchestration', 'policy', 'tool', 'rest'],
      loop.map((l) => [
        ...[l.policy, figure(l.directUsPerStep, 1), figure(l.sealedUsPerStep, 1), figure(l.sealingUsPerStep, 1)],
        ...[
          figure(l.orchestrationUsPerStep, 1),
          share(l.share.policy),
          share(l.share.tool),
          share(l.share.orchestration),
        ],
      ]),
    ),
    table(
      ['reset', 'per second', 'p50 ms'],
      resets.map(({ level, perSecond, p50Ms }) => [level, figure(perSecond), figure(p50Ms, 4)]),
    ),
    scaling(results),
  ];
  return { summary, text: text.join('\n\n'), interrupted: false };
}

function share(of: number): string {
  return `${(100 * of).toFixed(0)} %`;
}

/** What the workers of each kind bring over one of them. */
function scaling(results: readonly RolloutFigures[]): string {
  return results
    .flatMap((row) => {
      if (row.workers === 1) return [];
      const one = results.find(
        (r) => r.policy === row.policy && r.isolation === row.isolation && r.reset === row.reset && r.workers === 1,
      );
      if (one === undefined) return [];
      const times = (row.episodesPerSecond / one.episodesPerSecond).toFixed(2);
      return [`${row.policy}, ${row.isolation}: ${row.workers} workers are ${times} × one`];
    })
    .join('\n');
}
