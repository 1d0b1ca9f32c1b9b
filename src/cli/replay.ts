/** @module `isogym replay`: whether a run's episodes come to the same again. */
import { Command } from 'commander';
import type { ReplayReport } from '../train/replay-run.ts';
import { visible } from './episode-text.ts';
import { JSON_OPTION, once, runLong, someText } from './session.ts';
import { type EpisodeFilters, isMeant, Named, trajectory, wholeNumber } from './show.ts';

interface ReplayFlags extends EpisodeFilters {
  readonly limit?: number;
  readonly json?: boolean;
}

/** Differences that are printed for people; all are in the JSON. */
const SHOWN = 20;
/** A longer value is cut for people. */
const MAX_VALUE = 200;

export function replayCommand(): Command {
  return new Command('replay')
    .description('Execute recorded actions again in fresh worlds, and compare hash by hash.')
    .argument('<run>', "the run's folder, or its name in runs/")
    .option('--failed', 'only episodes without success')
    .option('--truncated', 'only those that a limit ended')
    .option('--task <id>', 'only those of one task', once(someText))
    .option('--episode <id>', 'only the one of this id', once(someText))
    .option('--limit <n>', 'at most n, the latest (default: all)', once(wholeNumber))
    .option(...JSON_OPTION)
    .action(replay);
}

async function replay(run: string, flags: ReplayFlags): Promise<void> {
  const { RunFolder } = await import('../io/run-folder.ts');
  const { path } = RunFolder.open(run, process.cwd());
  await runLong(flags.json === true, async ({ reporter, signal }) => {
    const { replayRun } = await import('../train/replay-run.ts');
    const named = new Named(flags);
    const report = await replayRun({
      run: path,
      read: (record) => trajectory(record, path),
      isMeant: (episode) => {
        named.see(episode);
        return isMeant(episode, flags);
      },
      ...(flags.limit === undefined ? {} : { limit: flags.limit }),
      signal,
      reporter,
    });
    named.check();
    if (report.differences.length > 0) process.exitCode = 1;
    return { summary: report, text: describe(report), interrupted: report.interrupted };
  });
}

function describe({ replayed, steps, matching, total, skipped, differences, interrupted }: ReplayReport): string {
  const short = (value: string) => visible(value.length > MAX_VALUE ? `${value.slice(0, MAX_VALUE)}…` : value);
  const lines = differences
    .slice(0, SHOWN)
    .flatMap(({ episode, line, step, what, expected, found, hash, changed }) => [
      `${episode} (line ${line}), ${step === null ? 'beginning or end' : `step ${step + 1}`}: ${visible(what)}`,
      `  expected  ${short(expected)}`,
      `  found     ${short(found)}`,
      `  hash      expected ${hash.expected.slice(0, 16)}…, found ${hash.found.slice(0, 16)}…`,
      ...(changed ? ['  the record does not fit its own hash chain: it was changed since it was written'] : []),
    ]);
  if (differences.length > SHOWN) lines.push(`… and ${differences.length - SHOWN} more, all of them with --json`);
  for (const { episode, why } of skipped.slice(0, SHOWN))
    lines.push(`${episode} not executed again, only held against its own hashes: ${visible(why)}`);
  if (skipped.length > SHOWN) lines.push(`… and ${skipped.length - SHOWN} more not executed again`);
  const what = `${replayed} of ${matching} matching episodes (${total} in all), ${steps} steps`;
  const same = replayed === 0 ? 'nothing compared' : 'all the same';
  const came = differences.length === 0 ? same : `${differences.length} differ`;
  return [...lines, `${interrupted ? 'interrupted after ' : ''}${what}: ${came}`].join('\n');
}
