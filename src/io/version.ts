/** @module The version of isogym that runs, from its own package.json. */
import { readFileSync } from 'node:fs';

export function isogymVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  return String((manifest as { readonly version?: unknown }).version);
}
