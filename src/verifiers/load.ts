/** @module A verifier from its module. */
import { shown } from '../records/declaration.ts';
import { IsogymError, inputError, messageOf } from '../records/errors.ts';
import { importHint } from '../records/import-hint.ts';
import { type Verifier, verifierProblems } from './verifier.ts';

/** The default export of a module. @throws VERIFIER_BROKEN where it cannot be imported or is no verifier, with all that is wrong with it. */
export async function importVerifier(url: string): Promise<Verifier> {
  let module: { readonly default?: unknown };
  try {
    module = (await import(url)) as typeof module;
  } catch (cause) {
    // What the author's own `defineVerifier` refused says already what to do.
    if (cause instanceof IsogymError) throw cause;
    throw inputError('VERIFIER_BROKEN', `${url} cannot be imported: ${messageOf(cause)}`, importHint(cause).hint);
  }
  const found = module.default;
  const hint = "export default defineVerifier({ name: 'mine', source: new URL('./verify.ts', import.meta.url) })";
  const refuse = (what: string) =>
    inputError('VERIFIER_BROKEN', `${url}: expected a default export made by defineVerifier, found ${what}`, hint);
  if (typeof found !== 'object' || found === null) throw refuse(found === undefined ? 'none' : shown(found));
  const problems = verifierProblems(found);
  if (problems.length > 0) throw refuse(`an object with these problems: ${problems.join('; ')}`);
  return found as Verifier;
}
