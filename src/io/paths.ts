/** @module Paths and arguments as a person can type them. */
import { isAbsolute, relative, sep } from 'node:path';

/** Relative where it lies under `from`, absolute elsewhere. */
export function shownPath(path: string, from: string = process.cwd()): string {
  const short = relative(from, path);
  return short === '..' || short.startsWith(`..${sep}`) || isAbsolute(short) ? path : short || '.';
}

/** An argument as a POSIX shell takes it: in quotes where it needs them. */
export function quoted(argument: string): string {
  return /^[\w./:=,@%+-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`;
}
