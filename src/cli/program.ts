/** @module The commands and their options. Nothing here loads more than it takes to print the help. */
import { Command } from 'commander';
import { isogymVersion } from '../io/version.ts';
import { benchCommand } from './bench.ts';
import { checkCommand } from './check.ts';
import { doctorCommand } from './doctor.ts';
import { evalCommand } from './eval.ts';
import { exerciseCommand } from './exercise.ts';
import { initCommand } from './init.ts';
import { replayCommand } from './replay.ts';
import { setupCommand } from './setup.ts';
import { showCommand } from './show.ts';
import { trainCommand } from './train.ts';

/** @param print where help and version go, in parts */
export function program(print: (text: string) => void = () => undefined): Command {
  const root = new Command('isogym')
    .description('Trains tool-using agents with reinforcement learning.')
    .version(isogymVersion(), '--version', 'print the version')
    .addHelpText('after', '\nExit codes: 0 done, 1 failed, 2 wrong input, 130 interrupted.');
  for (const command of [
    trainCommand(),
    evalCommand(),
    showCommand(),
    replayCommand(),
    initCommand(),
    checkCommand(),
    setupCommand(),
    doctorCommand(),
    exerciseCommand(),
    benchCommand(),
  ]) {
    root.addCommand(command);
  }
  for (const command of withChildren(root)) {
    // Messages are printed once, by `main`.
    command
      .exitOverride()
      .configureOutput({ outputError: () => undefined, writeOut: print })
      .helpOption('--help', 'print this help');
  }
  return root;
}

function withChildren(command: Command): readonly Command[] {
  return [command, ...command.commands.flatMap((child) => withChildren(child))];
}
