/** @module What every command does alike: where its output goes, and Ctrl-C. With `--json` stdout carries one object, and all else goes to stderr. */
import { InvalidArgumentError } from 'commander';
import { quoted } from '../io/paths.ts';
import { reporterTo } from '../io/progress.ts';
import { interruptible } from '../io/signals.ts';
import { IsogymError, messageOf } from '../records/errors.ts';
import type { Reporter } from '../train/reporter.ts';
import { visible } from './episode-text.ts';
import { INTERRUPTED } from './failure.ts';
import { asTyped } from './invocation.ts';
import { printJson } from './output.ts';

export const JSON_OPTION = ['--json', 'print one JSON object on stdout, and progress on stderr'] as const;

/** What a long command gives: the object that `--json` prints, the text that a person reads in its place, and whether it was stopped before its end. */
export interface Outcome {
  readonly summary: object;
  readonly text: string | null;
  readonly interrupted: boolean;
}

export interface LongCommand {
  readonly reporter: Reporter;
  readonly signal: AbortSignal;
}

/** Runs a command that takes a while: it can be interrupted, shows its progress, and ends with a summary. */
export async function runLong(json: boolean, work: (command: LongCommand) => Promise<Outcome>): Promise<void> {
  const output = reporterTo(json ? process.stderr : process.stdout, { dumb: process.env.TERM === 'dumb' });
  const reporter = { progress: output.progress, note: (text: string) => output.note(visible(asTyped(text))) };
  const interruption = interruptible(() => {
    output.end();
    output.note('Stopping … press Ctrl-C again to end at once.');
  });
  try {
    const outcome = await work({ reporter, signal: interruption.signal });
    output.end();
    if (json) printJson(outcome.summary);
    else if (outcome.text !== null) process.stdout.write(`\n${outcome.text}\n`);
    if (outcome.interrupted) process.exitCode = INTERRUPTED;
  } catch (error) {
    if (!interruption.signal.aborted || isLoss(error)) throw error;
    // Ctrl-C goes to every process of the terminal's group: what was being started may die of it before anything could be kept.
    reporter.note(`Interrupted before there was anything to go on from: ${messageOf(error)}`);
    if (json) printJson({ interrupted: true });
    process.exitCode = INTERRUPTED;
  } finally {
    output.end();
    interruption.release();
  }
}

/** Whether an interrupted run could not be kept: that is a failure, interrupted or not. */
function isLoss(error: unknown): boolean {
  return (
    error instanceof IsogymError && ['RUN_WRITE', 'RUN_GONE', 'WEIGHTS_DIVERGED', 'LEARNER_LOST'].includes(error.code)
  );
}

/** An option of one value. Told twice, which of the two is meant cannot be known. */
export function once<T>(parse: (text: string) => T): (text: string, before: T | undefined) => T {
  return (text, before) => {
    if (before !== undefined) throw new InvalidArgumentError('Expected this option once, found it again.');
    return parse(text);
  };
}

export function someText(text: string): string {
  if (text === '') throw new InvalidArgumentError('Expected some text.');
  return text;
}

/** The command as it can be typed again. */
export function commandLine(argv: readonly string[]): string {
  return ['isogym', ...argv.map(quoted)].join(' ');
}
