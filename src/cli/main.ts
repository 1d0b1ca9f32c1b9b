/** @module The command line: parses, runs one command, and turns whatever it throws into a message and an exit code. */
import { CommanderError } from 'commander';
import { inputError } from '../records/errors.ts';
import { report } from './failure.ts';
import { program } from './program.ts';

/**
 * Sets the exit code and returns: the process ends once its output is written.
 * 0 done, 1 failed, 2 wrong input, 130 interrupted.
 */
export async function main(argv: readonly string[]): Promise<void> {
  // Whoever read the output has left (`isogym show RUN | head`); the work itself goes on.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
  }
  const json = argv.includes('--json');
  process.on('uncaughtException', (error) => {
    report(error, json);
    process.exit();
  });
  try {
    await program().parseAsync([...argv], { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode !== 0) report(usageError(error), json);
    } else {
      report(error, json);
    }
  }
}

function usageError(error: CommanderError): Error {
  if (error.code === 'commander.help') return inputError('USAGE', 'expected a command, found none', 'isogym --help');
  const message = error.message.replace(/^error: /, '').replaceAll('\n', ' ');
  return inputError('USAGE', message, 'isogym --help, or isogym COMMAND --help');
}
