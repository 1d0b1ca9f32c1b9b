/** @module Where a module of this package lies, in a checkout and in the published package alike. */
import { existsSync } from 'node:fs';
import { inputError } from '../../records/errors.ts';

/** The module at `url`, or, beside a compiled build, the `.js` that `x.ts` became. @throws MODULE_NOT_FOUND */
export function resolveModule(url: URL): URL {
  if (existsSync(url)) return url;
  const compiled = new URL(url);
  compiled.pathname = url.pathname.replace(/\.ts$/, '.js');
  if (existsSync(compiled)) return compiled;
  throw inputError('MODULE_NOT_FOUND', `Expected a module at ${url.href}, found no such file.`);
}
