/** @module An environment from its module. */
import { shown } from '../records/declaration.ts';
import { IsogymError, inputError, messageOf } from '../records/errors.ts';
import { importHint } from '../records/import-hint.ts';
import type { Environment } from './environment.ts';
import { environmentProblems } from './environment-problems.ts';

/**
 * The default export of the module at an absolute URL, which a worker can import too.
 * @throws ENVIRONMENT_BROKEN where it cannot be imported or is no environment: what only looks like one is told apart here, with
 * all that is wrong with it, and not where it is first used
 */
export async function importEnvironment(url: string): Promise<Environment> {
  let module: { readonly default?: unknown };
  try {
    module = (await import(url)) as typeof module;
  } catch (cause) {
    // What the author's own `defineEnvironment` refused says already what to do.
    if (cause instanceof IsogymError) throw cause;
    throw new IsogymError('ENVIRONMENT_BROKEN', `${url} cannot be imported: ${messageOf(cause)}`, {
      cause,
      exitCode: 2,
      ...importHint(cause),
    });
  }
  const found = module.default;
  const hint = "export default defineEnvironment({ name: 'my-environment', … })";
  const refuse = (what: string) =>
    inputError(
      'ENVIRONMENT_BROKEN',
      `${url}: expected a default export made by defineEnvironment, found ${what}`,
      hint,
    );
  if (typeof found !== 'object' || found === null) throw refuse(found === undefined ? 'none' : shown(found));
  const problems = environmentProblems(found);
  if (problems.length > 0) throw refuse(`an object with these problems: ${problems.join('; ')}`);
  return found as Environment;
}
