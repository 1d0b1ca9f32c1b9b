/** @module The end of a run as text for people: the table of policies, what was gained, and one task before and after. */
import { quoted } from '../io/paths.ts';
import { table } from '../io/table.ts';
import type { PolicyRow } from '../train/evaluate.ts';
import type { Interval } from '../train/statistics.ts';
import type { Example, Summary } from '../train/summary.ts';
import { describeEpisode } from './episode-text.ts';
import { asTyped } from './invocation.ts';

export function describePolicies(rows: readonly PolicyRow[]): string {
  return table(
    ['policy', 'tasks', 'success (greedy)', 'success (sampled)', 'return', 'steps'],
    rows.map((row) => [
      row.name,
      tasks(row),
      interval(row.success),
      interval(row.sampledSuccess),
      interval(row.return),
      interval(row.steps),
    ]),
  );
}

function tasks({ tasks: all, unusable, sampledUnusable }: PolicyRow): string {
  return unusable + sampledUnusable === 0
    ? String(all)
    : `${all} (unusable: ${unusable} greedy, ${sampledUnusable} sampled)`;
}

/** `command` is what was typed: with the seed it reproduces the run. */
export function describeRun(summary: Summary, example: Example, command: string): string {
  const { gain } = summary;
  return [
    `Held-out tasks, 95 % intervals (Wilson for success, bootstrap for return and steps):`,
    '',
    describePolicies(summary.policies),
    '',
    `Gain of trained over ${gain.over}, paired by task: greedy ${interval(gain.success)}, sampled ${interval(gain.sampledSuccess)}`,
    '',
    `One held-out task, ${gain.over}:`,
    describeEpisode(example.before),
    'The same task, trained:',
    describeEpisode(example.after),
    '',
    `seed ${summary.seed}, backend ${summary.backend}, ${summary.iterations} ${summary.iterations === 1 ? 'iteration' : 'iterations'}, ${summary.wallSeconds.toFixed(1)} s`,
    `run       ${summary.run}`,
    `again     ${asTyped(command)}`,
    asTyped(`episodes  isogym show ${quoted(summary.run)}`),
  ].join('\n');
}

function interval({ mean, low, high }: Interval): string {
  return `${mean.toFixed(3)} [${low.toFixed(3)}, ${high.toFixed(3)}]`;
}
