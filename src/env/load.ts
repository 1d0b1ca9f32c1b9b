/** @module Finding an environment: a built-in name, or a module of the user's own. */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { IsogymError, inputError, messageOf } from '../records/errors.ts';
import { nearest } from '../records/nearest.ts';
import type { Environment } from './environment.ts';
import { resolveModule } from './sandbox/bundle.ts';

const BUILT_IN: ReadonlyMap<string, URL> = new Map([['toy-lookup', new URL('./toy-lookup/index.ts', import.meta.url)]]);

/**
 * @param wanted a built-in name, a path, or a `file:` URL; a path begins with `.` or `/` or ends in `.ts`, `.js` or `.mjs`.
 * @param from the folder that a relative path starts at.
 * @returns the environment and the absolute URL of its module, which a worker can import.
 * @throws UNKNOWN_ENVIRONMENT, MODULE_NOT_FOUND, ENVIRONMENT_BROKEN
 */
export async function loadEnvironment(
  wanted: string,
  from: string,
): Promise<{ readonly url: string; readonly environment: Environment }> {
  const url = resolveModule(locate(wanted, from)).href;
  return { url, environment: await importEnvironment(url) };
}

/** The default export of a module. @throws ENVIRONMENT_BROKEN where it cannot be imported or is no environment. */
export async function importEnvironment(url: string): Promise<Environment> {
  let module: { readonly default?: unknown };
  try {
    module = (await import(url)) as typeof module;
  } catch (cause) {
    throw new IsogymError('ENVIRONMENT_BROKEN', `${url} cannot be imported: ${messageOf(cause)}`, {
      cause,
      exitCode: 2,
    });
  }
  const found = module.default as Partial<Environment> | null | undefined;
  if (typeof found !== 'object' || found === null || !(found.world instanceof URL) || found.limits === undefined) {
    throw inputError(
      'ENVIRONMENT_BROKEN',
      `${url}: expected a default export made by defineEnvironment, found ${found === undefined ? 'none' : typeof found}`,
      "export default defineEnvironment({ name: 'my-environment', … })",
    );
  }
  return found as Environment;
}

function locate(wanted: string, from: string): URL {
  const builtIn = BUILT_IN.get(wanted);
  if (builtIn !== undefined) return builtIn;
  if (wanted.startsWith('file:') && URL.canParse(wanted)) return new URL(wanted);
  if (/^\.|[\\/]|\.[mc]?[jt]s$/.test(wanted)) return pathToFileURL(resolve(from, wanted));
  const names = [...BUILT_IN.keys()];
  const close = nearest(wanted, names);
  throw inputError(
    'UNKNOWN_ENVIRONMENT',
    `expected a built-in environment (${names.join(', ')}) or a path to a module, found ${JSON.stringify(wanted)}`,
    close === undefined ? `for a module of your own write its path: ./${wanted}.ts` : `did you mean ${close}?`,
  );
}
