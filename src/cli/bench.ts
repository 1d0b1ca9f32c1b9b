/** @module `isogym bench`: what this machine does, in figures that can be compared. */
import { Command } from 'commander';
import type { BenchMode, BenchResult } from '../bench/train.ts';
import type { BackendName } from '../policy/backends/backend.ts';
import { inputError } from '../records/errors.ts';
import { listOf, oneOf, seconds, whole } from './bench-options.ts';
import { benchRolloutsCommand } from './bench-rollouts.ts';
import { benchSandboxCommand } from './bench-sandbox.ts';
import { JSON_OPTION, type LongCommand, type Outcome, runLong } from './session.ts';

const SIZES = ['0.4', '6', '30'] as const;
const BACKENDS = ['auto', 'cuda', 'native', 'webgpu', 'wasm', 'cpu'] as const;

interface Flags {
  readonly backend: 'auto' | BackendName;
  readonly size: readonly (typeof SIZES)[number][];
  readonly mode: readonly BenchMode[];
  readonly rows: number;
  readonly length: number;
  readonly decode: readonly number[];
  readonly seconds: number;
  readonly passes: number;
  readonly json?: boolean;
}

export function benchCommand(): Command {
  const bench = new Command('bench').description('Measure what this machine does.');
  bench.addCommand(
    new Command('train')
      .description('Time a training step and decoding, eagerly and replayed.')
      .option('--backend <name>', `one of ${BACKENDS.join(', ')}`, oneOf(BACKENDS), 'auto')
      .option('--size <millions>', `parameters: ${SIZES.join(', ')}, or several by comma`, listOf(oneOf(SIZES)), [
        '0.4',
      ])
      .option('--mode <modes>', 'eager, replay, or both by comma', listOf(oneOf(['eager', 'replay'])), [
        'eager',
        'replay',
      ])
      .option('--rows <n>', 'rows of a training step', whole, 16)
      .option('--length <n>', 'tokens of a row', whole, 128)
      .option('--decode <rows>', 'rows to decode, by comma', listOf(whole), [16, 64, 256])
      .option('--seconds <n>', 'for each figure, at least', seconds, 3)
      .option('--passes <n>', 'for each figure, at least, after one that is not measured', whole, 3)
      .option(...JSON_OPTION)
      .action((flags: Flags) => runLong(flags.json === true, (run) => benchTrain(flags, run))),
  );
  bench.addCommand(benchRolloutsCommand());
  bench.addCommand(benchSandboxCommand());
  return bench;
}

async function benchTrain(flags: Flags, { reporter, signal }: LongCommand): Promise<Outcome> {
  const { describeBackend, selectBackend } = await import('../policy/backends/select.ts');
  const { canReplay } = await import('../policy/replay/session.ts');
  const { BENCH_MODELS, benchTrain: measure } = await import('../bench/train.ts');
  const { examine } = await import('../io/machine.ts');
  const { now } = await import('../io/clock.ts');
  const { table } = await import('../io/table.ts');
  const backend = await selectBackend(flags.backend);
  reporter.note(describeBackend(backend));
  if (!canReplay() && flags.mode.includes('replay')) {
    const without = `replay works on native and cuda only, this is ${backend.name}`;
    if (!flags.mode.includes('eager')) throw inputError('BENCH_MODE', `expected a mode that works here: ${without}`);
    reporter.note(`eager only: ${without}`);
  }
  const results: BenchResult[] = [];
  for (const size of flags.size) {
    for (const mode of flags.mode) {
      if (mode === 'replay' && !canReplay()) continue;
      if (signal.aborted) return { summary: { interrupted: true, results }, text: null, interrupted: true };
      reporter.note(`${size} M, ${mode}`);
      results.push(
        await measure({
          backend: backend.name,
          model: BENCH_MODELS[size],
          mode,
          rows: flags.rows,
          length: flags.length,
          decodeRows: flags.decode,
          budgetMs: 1000 * flags.seconds,
          passes: flags.passes,
          now,
          residentMiB: () => process.memoryUsage().rss / 2 ** 20,
        }),
      );
    }
  }
  const head = ['mode', 'parameters', 'step ms', ...flags.decode.map((rows) => `ms/token at ${rows}`), 'left', 'MiB'];
  const rows = results.map((r) => [
    r.mode,
    String(r.parameters),
    r.trainStepMs.toFixed(1),
    ...r.decode.map(({ msPerToken }) => msPerToken.toFixed(2)),
    String(r.tensorsLeaked),
    String(r.memoryMiB),
  ]);
  return {
    summary: { machine: { ...examine(), device: backend.device }, results },
    text: table(head, rows),
    interrupted: false,
  };
}
