/** @module A verifier from its module. */
import { inputError, messageOf } from '../records/errors.ts';
import type { Verifier } from './verifier.ts';

/** The default export of a module. @throws VERIFIER_BROKEN where it cannot be imported or is no verifier. */
export async function importVerifier(url: string): Promise<Verifier> {
  let module: { readonly default?: unknown };
  try {
    module = (await import(url)) as typeof module;
  } catch (cause) {
    throw inputError('VERIFIER_BROKEN', `${url} cannot be imported: ${messageOf(cause)}`);
  }
  const found = module.default as Partial<Verifier> | null | undefined;
  if (typeof found !== 'object' || found === null || !(found.source instanceof URL) || found.range === undefined) {
    throw inputError(
      'VERIFIER_BROKEN',
      `${url}: expected a default export made by defineVerifier, found ${found === undefined ? 'none' : typeof found}`,
      "export default defineVerifier({ name: 'mine', source: new URL('./verify.ts', import.meta.url) })",
    );
  }
  return found as Verifier;
}
