/** @module `isogym init env`: a small environment to begin with, which passes `isogym check` and trains as it stands. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Command } from 'commander';
import { isogymVersion } from '../io/version.ts';
import { invocation } from './invocation.ts';
import { printJson } from './output.ts';
import { JSON_OPTION } from './session.ts';

/** As long as isogym is in no registry: from the tarball that `npm run pack:package` makes in a clone. */
const installs = (): string => `npm install PATH/TO/isogym-${isogymVersion()}.tgz zod`;

export function initCommand(): Command {
  const init = new Command('init').description('Begin something of your own.');
  init.addCommand(
    new Command('env')
      .description('Write a folder with a small environment that passes its checks and can be trained.')
      .argument('<name>', 'of the folder, the environment and its runs, in kebab-case')
      .option(...JSON_OPTION)
      .action(initEnvironment),
  );
  return init;
}

async function initEnvironment(name: string, flags: { readonly json?: boolean }): Promise<void> {
  const { writeTemplate } = await import('../io/template.ts');
  const cwd = process.cwd();
  const files = writeTemplate('environment', name, cwd);
  const isogym = invocation();
  const check = `${isogym} check ${name}/environment.ts --verifier ${name}/verifier.ts`;
  const train = `${isogym} train --config ${name}/config.yaml`;
  const install = resolves(join(cwd, name)) ? null : installs();
  if (flags.json === true) {
    printJson({ folder: name, files, install, check, train });
    return;
  }
  const first = install === null ? [] : [`  ${install}    (the tarball: npm run pack:package in a clone of isogym)`];
  process.stdout.write(
    [`${name}/: ${files.join(', ')}`, '', 'Next:', ...first, `  ${check}`, `  ${train}`, ''].join('\n'),
  );
}

/** Whether modules in the folder find what they import. */
function resolves(folder: string): boolean {
  const { resolve } = createRequire(join(folder, 'environment.ts'));
  try {
    resolve('isogym/package.json');
    resolve('zod');
    return true;
  } catch {
    return false;
  }
}
