/** @module `isogym train`: from a config to a run folder with a trained policy, or on from where a run was stopped. */
import { join } from 'node:path';
import { Command } from 'commander';
import { quoted, shownPath } from '../io/paths.ts';
import { inputError } from '../records/errors.ts';
import { asTyped } from './invocation.ts';
import { printJson } from './output.ts';
import { commandLine, JSON_OPTION, once, runLong, someText } from './session.ts';

interface TrainFlags {
  readonly config?: string;
  readonly resume?: string;
  readonly eager?: boolean;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

/** What a resumed run may be told anew: none of it changes what an iteration computes, given a backend. */
const RESUME_OVERRIDES = ['backend', 'workers', 'iterations', 'checkpoint'];

export function trainCommand(): Command {
  return new Command('train')
    .description('Train a policy as a config says.')
    .argument('[overrides...]', 'key.path=value, in place of what the config says')
    .option(
      '--config <file>',
      "a YAML file; a bare name is looked for here, then among isogym's own configs",
      once(someText),
    )
    .option('--resume <run>', 'go on with a run that was stopped: its folder, or its name in runs/', once(someText))
    .option('--eager', 'run operation by operation, with no recorded graph: short for replay=false')
    .option('--dry-run', 'print the config with every default filled in, and stop')
    .option(...JSON_OPTION)
    .action(train);
}

async function train(given: readonly string[], flags: TrainFlags): Promise<void> {
  const overrides = flags.eager === true ? [...given, 'replay=false'] : given;
  checkFlags(flags, overrides);
  const { stringify } = await import('yaml');
  const { loadConfig } = await import('../io/config-file.ts');
  const cwd = process.cwd();
  const resume = flags.resume === undefined ? undefined : await runToResume(flags.resume, overrides, cwd);
  const file = flags.config ?? join(resume ?? '', 'config.yaml');
  const { config, source, where } = loadConfig({ file, overrides, cwd });
  const json = flags.json === true;
  if (flags.dryRun === true) {
    if (json) printJson({ config, source });
    else process.stdout.write(stringify(config));
    return;
  }
  await runLong(json, async ({ reporter, signal }) => {
    const run = await import('../train/run.ts');
    const { describeRun } = await import('./summary-text.ts');
    const command = commandLine(process.argv.slice(2));
    const again = (path: string) =>
      resume === undefined ? command : `isogym train --config ${quoted(join(path, 'config.yaml'))}`;
    const outcome = await run.train({
      config,
      where,
      command,
      signal,
      reporter,
      ...(resume === undefined ? {} : { resume }),
    });
    if (outcome.interrupted) {
      const { resume: command, ...rest } = outcome.summary;
      return { summary: { ...rest, resume: asTyped(command) }, interrupted: true, text: null };
    }
    const { summary, example } = outcome;
    return { summary, interrupted: false, text: describeRun(summary, example, again(summary.run)) };
  });
}

function checkFlags({ config, resume }: TrainFlags, overrides: readonly string[]): void {
  if (resume === undefined && config === undefined) {
    const meant = overrides.find((override) => /\.ya?ml$/.test(override)) ?? 'toy-lookup.yaml';
    const hint = `isogym train --config ${quoted(meant)}`;
    throw inputError('USAGE', 'expected --config FILE or --resume RUN, found neither', hint);
  }
  if (resume !== undefined && config !== undefined) {
    const hint = 'A resumed run takes the config in its folder.';
    throw inputError('USAGE', 'expected --config or --resume, found both', hint);
  }
}

/** The run's folder. @throws RUN_NOT_FOUND, RESUME_OVERRIDE */
async function runToResume(run: string, overrides: readonly string[], cwd: string): Promise<string> {
  const { RunFolder } = await import('../io/run-folder.ts');
  const { path } = RunFolder.open(run, cwd);
  const refused = overrides.find((override) => !RESUME_OVERRIDES.includes(override.split(/[.=]/, 1)[0] ?? ''));
  if (refused === undefined) return path;
  throw inputError(
    'RESUME_OVERRIDE',
    `expected an override of ${RESUME_OVERRIDES.join(', ')}, found ${JSON.stringify(refused)}: a resumed run keeps the rest of its config`,
    `Begin a new run with it: isogym train --config ${quoted(shownPath(join(path, 'config.yaml')))} ${quoted(refused)}`,
  );
}
