/** @module The command line: parses, runs one command, and turns whatever it throws into a message and an exit code. */
import { CommanderError } from 'commander';
import { IsogymError, inputError } from '../records/errors.ts';
import { nearest } from '../records/nearest.ts';
import { report } from './failure.ts';
import { printJson, reserveStdout, surviveLostOutput } from './output.ts';
import { program } from './program.ts';

/**
 * Sets the exit code and returns: the process ends once its output is written.
 * 0 done, 1 failed, 2 wrong input, 130 interrupted.
 */
export async function main(argv: readonly string[]): Promise<void> {
  const json = argv.includes('--json');
  if (json) reserveStdout();
  surviveLostOutput((error) => report(error, false));
  let ended = false;
  process.on('uncaughtException', (error) => {
    ended = true;
    report(error, json);
    process.exit();
  });
  // A module of the config may call `process.exit`, or await what never comes: neither is a command that is done.
  process.on('exit', () => {
    if (!ended) report(endedEarly(), json);
  });
  let text = '';
  const print = (part: string) => {
    if (json) text += part;
    else process.stdout.write(part);
  };
  try {
    await program(print).parseAsync([...argv], { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode !== 0) report(usageError(error, argv), json);
      else if (json) printJson({ text: text.trimEnd() });
    } else {
      report(error, json);
    }
  }
  ended = true;
}

function usageError(error: CommanderError, argv: readonly string[]): Error {
  if (error.code === 'commander.help') {
    const [first, asked] = argv.filter((word) => !word.startsWith('-'));
    if (first !== 'help' || asked === undefined) {
      return inputError('USAGE', 'expected a command, found none', 'isogym --help');
    }
    const near = nearest(
      asked,
      program().commands.map((command) => command.name()),
    );
    const guess = near === undefined ? '' : ` (did you mean ${near}?)`;
    return inputError('USAGE', `expected a command, found ${JSON.stringify(asked)}${guess}`, 'isogym --help');
  }
  const message = error.message.replace(/^error: /, '').replaceAll('\n', ' ');
  const [, override] = /^unknown option '--([\w.]+=.*)'/s.exec(message) ?? [];
  const hint =
    override === undefined
      ? 'isogym --help, or isogym COMMAND --help'
      : `A key of the config is told without dashes: isogym train --config FILE ${override}`;
  return inputError('USAGE', message, hint);
}

function endedEarly(): Error {
  return new IsogymError('ENDED_EARLY', 'expected the command to end, found that the process ended before it', {
    hint: 'A module that the config names calls process.exit, or awaits something that never comes.',
  });
}
