/** @module Paths as a person can type them. */
import { isAbsolute, relative, sep } from 'node:path';

/** Relative where it lies under `from`, absolute elsewhere. */
export function shownPath(path: string, from: string = process.cwd()): string {
  const short = relative(from, path);
  return short === '..' || short.startsWith(`..${sep}`) || isAbsolute(short) ? path : short || '.';
}
