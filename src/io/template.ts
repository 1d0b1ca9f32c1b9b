/** @module Folders to begin with: a template of this package, written out under a name. Nothing that exists is written to. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { IsogymError, inputError, messageOf } from '../records/errors.ts';

const TEMPLATES = fileURLToPath(new URL('../../templates/', import.meta.url));
const SCHEMA = fileURLToPath(new URL('../../configs/isogym.schema.json', import.meta.url));
/** Stands for the name in every template. */
const PLACEHOLDER = 'my-environment';
/** The template's own line, for editors; it points to where the schema lies from there. */
const SCHEMA_LINE = /^# yaml-language-server: .*\n/;

/**
 * Makes the folder `cwd/name` with the template's files in it.
 * @returns the files, by their names in the folder
 * @param write how one file is written; a new one
 * @throws NAME_INVALID; FOLDER_EXISTS where anything has that name already; FOLDER_REFUSED where it cannot be written, with nothing left of it
 */
export function writeTemplate(
  template: 'environment',
  name: string,
  cwd: string,
  write = (file: string, text: string): void => writeFileSync(file, text, { flag: 'wx' }),
): readonly string[] {
  if (!/^[a-z][a-z0-9-]{0,59}$/.test(name)) {
    const plain = name
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '-')
      .replace(/^[^a-z]+|-+$/g, '')
      .slice(0, 60);
    throw inputError(
      'NAME_INVALID',
      `expected a name in kebab-case of at most 60 characters, found ${JSON.stringify(name.slice(0, 80))}`,
      `It names a folder here, the environment and its runs, e.g. ${plain === '' ? 'my-environment' : plain}.`,
    );
  }
  const folder = resolve(cwd, name);
  const refuse = (cause: unknown) =>
    new IsogymError('FOLDER_REFUSED', `cannot write the folder ${folder}: ${messageOf(cause)}`, {
      cause,
      hint: 'cd to a folder that can be written to, or change who may write here. Nothing is left of what was begun.',
    });
  try {
    mkdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw refuse(error);
    throw inputError(
      'FOLDER_EXISTS',
      `expected a name that is free, found that ${name} exists here`,
      'Take another name: nothing that exists is written to.',
    );
  }
  try {
    const files = readdirSync(join(TEMPLATES, template)).sort();
    for (const file of files) {
      const text = readFileSync(join(TEMPLATES, template, file), 'utf8').replace(SCHEMA_LINE, schemaLine(folder, cwd));
      write(join(folder, file), text.replaceAll(PLACEHOLDER, name));
    }
    return files;
  } catch (error) {
    // Its name would be taken the next time.
    rmSync(folder, { recursive: true, force: true });
    throw refuse(error);
  }
}

/** None where the package lies elsewhere: a path of this machine has no place in a file that is shared. */
function schemaLine(folder: string, cwd: string): string {
  if (!existsSync(SCHEMA) || relative(cwd, SCHEMA).startsWith('..')) return '';
  return `# yaml-language-server: $schema=${relative(folder, SCHEMA).split(sep).join('/')}\n`;
}
