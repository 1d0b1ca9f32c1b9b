/** @module Which file a config's `module` names: a built-in by its folder's name, or a path. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { inputError } from '../records/errors.ts';
import { nearest } from '../records/nearest.ts';

export type ModuleKind = 'environment' | 'verifier';

/** Built-ins stand in a folder each, beside the file that runs in the isolate: `src/env/toy-lookup`, `src/verifiers/exact-answer`. */
const HOMES = {
  environment: { folder: fileURLToPath(new URL('../env/', import.meta.url)), sealed: 'world' },
  verifier: { folder: fileURLToPath(new URL('../verifiers/', import.meta.url)), sealed: 'verify' },
} as const;
/** Sources are `.ts`, the published package is `.js`. */
const EXTENSION = import.meta.url.endsWith('.ts') ? '.ts' : '.js';

function builtInFile(kind: ModuleKind, name: string, file = 'index'): string {
  return resolve(HOMES[kind].folder, name, `${file}${EXTENSION}`);
}

export function builtIns(kind: ModuleKind): readonly string[] {
  return readdirSync(HOMES[kind].folder).filter((name) => existsSync(builtInFile(kind, name, HOMES[kind].sealed)));
}

const MODULE_FILE = /\.[cm]?[jt]s$/;

function isPath(module: string): boolean {
  return /[\\/]/.test(module) || MODULE_FILE.test(module);
}

/** A path made absolute; a built-in name as it is. */
export function resolveModulePath(module: string, folder: string): string {
  return isPath(module) ? resolve(folder, module) : module;
}

/** Why a resolved module cannot be loaded, as `expected …, found …`; undefined where its file is there. */
export function moduleProblem(kind: ModuleKind, module: string, written: string): string | undefined {
  if (isPath(module)) {
    const stat = existsSync(module) ? statSync(module) : undefined;
    if (stat?.isFile()) {
      return MODULE_FILE.test(module)
        ? undefined
        : `expected a path to a module of TypeScript or JavaScript (.ts, .js, .mjs, …), found ${JSON.stringify(written)}`;
    }
    const what = stat === undefined ? 'nothing' : stat.isDirectory() ? 'a folder' : 'something that is not a file';
    return `expected a path to a module, found ${what} at ${JSON.stringify(written)}`;
  }
  const names = builtIns(kind);
  if (names.includes(module)) return undefined;
  const near = nearest(module, names);
  const expected = `expected a built-in ${kind} (${names.join(', ')}) or a path to a module`;
  return `${expected}, found ${JSON.stringify(written)}${near === undefined ? '' : ` (did you mean ${near}?)`}`;
}

/**
 * The URL of a module named in a loaded config.
 * @throws MODULE_NOT_FOUND
 */
export function moduleUrl(kind: ModuleKind, module: string): URL {
  const problem = moduleProblem(kind, module, module);
  if (problem !== undefined) throw inputError('MODULE_NOT_FOUND', `${kind}.module: ${problem}`);
  return pathToFileURL(isPath(module) ? module : builtInFile(kind, module));
}
