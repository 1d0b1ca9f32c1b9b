/** @module `isogym eval`: a run's latest checkpoint on its held-out tasks. */
import { Command } from 'commander';
import { JSON_OPTION, runLong } from './session.ts';

export function evalCommand(): Command {
  return new Command('eval')
    .description("Evaluate a run's latest checkpoint on the held-out tasks.")
    .argument('<run>', "the run's folder, or its name in runs/")
    .option(...JSON_OPTION)
    .action(evaluate);
}

async function evaluate(run: string, flags: { readonly json?: boolean }): Promise<void> {
  const { RunFolder } = await import('../io/run-folder.ts');
  const { path } = RunFolder.open(run, process.cwd());
  await runLong(flags.json === true, async ({ reporter, signal }) => {
    const { evaluateRun } = await import('../train/evaluate-run.ts');
    const { describePolicies } = await import('./summary-text.ts');
    const summary = await evaluateRun({ run: path, signal, reporter });
    return { summary, interrupted: false, text: describePolicies([summary.policy]) };
  });
}
