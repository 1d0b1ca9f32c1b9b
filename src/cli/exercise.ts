/** @module `isogym exercise`: the exercises of the reference text, each with what it should show. */
import { Command } from 'commander';
import { JSON_OPTION, runLong } from './session.ts';

export function exerciseCommand(): Command {
  const command = new Command('exercise').description('Run an exercise, and set what is seen beside what is expected.');
  command
    .command('step-penalty')
    .description('What a penalty per step makes of toy-lookup: the exact optimum, and what is learnt from scratch.')
    .option(...JSON_OPTION)
    .action(stepPenalty);
  return command;
}

async function stepPenalty(flags: { readonly json?: boolean }): Promise<void> {
  await runLong(flags.json === true, async ({ reporter, signal }) => {
    const { runStepPenalty } = await import('../exercises/step-penalty/run.ts');
    return runStepPenalty({ signal, reporter });
  });
}
