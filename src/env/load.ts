/** @module An environment from its module. */
import { IsogymError, inputError, messageOf } from '../records/errors.ts';
import type { Environment } from './environment.ts';

/** The default export of the module at an absolute URL, which a worker can import too. @throws ENVIRONMENT_BROKEN where it cannot be imported or is no environment. */
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
