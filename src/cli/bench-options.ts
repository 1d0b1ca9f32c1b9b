/** @module What the options of `isogym bench` are read by. */
import { InvalidArgumentError } from 'commander';

/** Rows, tokens, episodes: more is a slip of the finger, and no machine holds it. */
const MAX_COUNT = 65_536;

export function whole(text: string): number {
  const n = Number(text);
  if (/^\d+$/.test(text) && n > 0 && n <= MAX_COUNT) return n;
  throw new InvalidArgumentError(`expected a whole number from 1 to ${MAX_COUNT}, found ${text}`);
}

export function seconds(text: string): number {
  const n = Number(text);
  if (text.trim() !== '' && Number.isFinite(n) && n > 0) return n;
  throw new InvalidArgumentError(`expected a number above 0, found ${text}`);
}

export function oneOf<const T extends string>(allowed: readonly T[]): (text: string) => T {
  return (text) => {
    const found = allowed.find((one) => one === text);
    if (found !== undefined) return found;
    throw new InvalidArgumentError(`expected one of ${allowed.join(', ')}, found ${text}`);
  };
}

export function listOf<T>(parse: (text: string) => T): (text: string) => readonly T[] {
  return (text) => text.split(',').map(parse);
}
