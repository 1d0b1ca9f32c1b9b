/** @module `isogym check`: tries an environment, and a verifier with it, in the ways in which such modules go wrong. */
import { Command } from 'commander';
import type { CheckReport } from '../check/index.ts';
import { inputError, messageOf } from '../records/errors.ts';
import { visible } from './episode-text.ts';
import { printJson } from './output.ts';
import { JSON_OPTION, once, someText } from './session.ts';

interface CheckFlags {
  readonly verifier?: string;
  readonly json?: boolean;
}

export function checkCommand(): Command {
  return new Command('check')
    .description('Try an environment of your own: one line for each check, with what was seen.')
    .argument('<environment>', 'a built-in name, or a path to a module')
    .argument('[overrides...]', "key=value, the environment's options")
    .option('--verifier <module>', 'a verifier that judges: a built-in name, or a path to a module', once(someText))
    .option(...JSON_OPTION)
    .action(check);
}

async function check(environment: string, options: readonly string[], flags: CheckFlags): Promise<void> {
  const { checkEnvironment } = await import('../check/index.ts');
  const report = await checkEnvironment({
    environment,
    options: await optionsOf(options),
    ...(flags.verifier === undefined ? {} : { verifier: flags.verifier }),
  });
  if (flags.json === true) printJson(report);
  else process.stdout.write(`${describeReport(report)}\n`);
  if (!report.passed) process.exitCode = 1;
}

/** `key=value` with the value in YAML, as in a config. */
async function optionsOf(written: readonly string[]): Promise<Record<string, unknown>> {
  const { parse } = await import('yaml');
  const options: Record<string, unknown> = {};
  for (const option of written) {
    const [, key, value] = /^([^=]+)=(.*)$/s.exec(option) ?? [];
    const hint = 'isogym check toy-lookup values=9 --verifier exact-answer';
    if (key === undefined || value === undefined || key === '__proto__') {
      throw inputError('USAGE', `expected key=value, found ${JSON.stringify(option)}`, hint);
    }
    try {
      options[key] = parse(value);
    } catch (error) {
      throw inputError(
        'USAGE',
        `${key}: expected a value in YAML, found ${JSON.stringify(value)}: ${messageOf(error)}`,
        hint,
      );
    }
  }
  return options;
}

const MARKS = { passed: 'ok', failed: 'FAILED', skipped: '–' } as const;

function describeReport({ environment, verifier, checks }: CheckReport): string {
  const width = Math.max(...checks.map(({ name }) => name.length));
  const lines = checks.map(({ name, status, seen, hint }) => {
    const line = `${MARKS[status].padEnd(6)}  ${name.padEnd(width)}  ${visible(seen)}`;
    return hint === undefined ? line : `${line}\n${' '.repeat(8 + width)}  → ${visible(hint)}`;
  });
  const count = (status: keyof typeof MARKS) => checks.filter((one) => one.status === status).length;
  const of = verifier === null ? environment : `${environment} with ${verifier}`;
  const summary = `${of}: ${count('passed')} passed, ${count('failed')} failed, ${count('skipped')} skipped`;
  return [...lines, '', summary].join('\n');
}
