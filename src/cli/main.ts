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
    await program(print).parseAsync(withJsonLast(argv), { from: 'user' });
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
  const { path, children, next } = commandOf(argv);
  if (children.length > 0 && (next === undefined || error.code === 'commander.help')) {
    const of = path.length === 0 ? 'a command' : `a command of ${path.join(' ')} (${children.join(', ')})`;
    const near = nearest(next ?? '', children);
    const found =
      next === undefined ? 'none' : `${JSON.stringify(next)}${near === undefined ? '' : ` (did you mean ${near}?)`}`;
    return inputError('USAGE', `expected ${of}, found ${found}`, ['isogym', ...path, '--help'].join(' '));
  }
  const message = error.message.replace(/^error: /, '').replaceAll('\n', ' ');
  const [, override] = /^unknown option '--([\w.]+=.*)'/s.exec(message) ?? [];
  const hint =
    override === undefined
      ? 'isogym --help, or isogym COMMAND --help'
      : `A key of the config is told without dashes: isogym train --config FILE ${override}`;
  return inputError('USAGE', message, hint);
}

/** `--json` may stand anywhere, before a command's name too; the command itself takes it as an option of its own. */
function withJsonLast(argv: readonly string[]): string[] {
  if (!argv.includes('--json')) return [...argv];
  const end = argv.includes('--') ? argv.indexOf('--') : argv.length;
  const words = argv.slice(0, end).filter((word) => word !== '--json');
  const { path, children } = commandOf(words);
  const takesIt = path.length > 0 && children.length === 0 && words[0] !== 'help';
  return [...words, ...(takesIt ? ['--json'] : []), ...argv.slice(end)];
}

/** How far the words typed name a command: its path, its own commands, and the first word that names none of them. */
function commandOf(argv: readonly string[]): {
  readonly path: readonly string[];
  readonly children: readonly string[];
  readonly next: string | undefined;
} {
  let command = program();
  const words = argv.filter((word) => !word.startsWith('-'));
  const typed = words[0] === 'help' ? words.slice(1) : words;
  const path: string[] = [];
  for (const word of typed) {
    const child = command.commands.find((one) => one.name() === word);
    if (child === undefined) break;
    path.push(word);
    command = child;
  }
  return { path, children: command.commands.map((one) => one.name()), next: typed[path.length] };
}

function endedEarly(): Error {
  return new IsogymError('ENDED_EARLY', 'expected the command to end, found that the process ended before it', {
    hint: 'A module that the config names calls process.exit, or awaits something that never comes.',
  });
}
