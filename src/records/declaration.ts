/** @module What is wrong with a declaration that an author hands in, all of it at once: `path: expected …, found …`. */
import { nearest } from './nearest.ts';

/** Longest timeout that a timer or an isolate takes [ms]. */
export const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** A value as a message shows it, short enough for a line. Runs none of the value's code. */
export function shown(value: unknown): string {
  switch (typeof value) {
    case 'undefined':
      return 'nothing';
    case 'function':
      return 'a function';
    case 'bigint':
      return `the BigInt ${value}`;
    case 'symbol':
      return 'a symbol';
    case 'string':
      return value.length > 60 ? `${JSON.stringify(value.slice(0, 57))}…` : JSON.stringify(value);
    case 'object':
      if (value === null) return 'null';
      return Array.isArray(value) ? 'an array' : 'an object';
    default:
      return String(value);
  }
}

/** One record of a declaration, looked at key by key. */
export class Declared {
  readonly problems: string[] = [];
  readonly #record: Readonly<Record<string, unknown>> | undefined;
  readonly #path: string;

  /** @param path of the record itself, e.g. `limits`; empty for the whole declaration */
  constructor(record: unknown, path = '') {
    this.#path = path === '' ? '' : `${path}.`;
    const isRecord = typeof record === 'object' && record !== null && !Array.isArray(record);
    this.#record = isRecord ? (record as Readonly<Record<string, unknown>>) : undefined;
    if (!isRecord) this.problems.push(`${path === '' ? '' : `${path}: `}expected an object, found ${shown(record)}`);
  }

  /** The value of a key; undefined where there is no record. */
  get(key: string): unknown {
    return this.#record?.[key];
  }

  keys(): readonly string[] {
    return Object.keys(this.#record ?? {});
  }

  /** Of what is no record nothing more is said. */
  add(key: string, text: string): void {
    if (this.#record !== undefined) this.problems.push(`${this.#path}${key}: ${text}`);
  }

  expect(key: string, expected: string, holds: (value: unknown) => boolean): void {
    const value = this.get(key);
    if (!holds(value)) this.add(key, `expected ${expected}, found ${shown(value)}`);
  }

  oneOf(key: string, allowed: readonly string[]): void {
    const value = this.get(key);
    if (typeof value === 'string' && allowed.includes(value)) return;
    const close = typeof value === 'string' ? nearest(value, allowed) : undefined;
    this.add(key, `expected one of ${allowed.join(', ')}, found ${shown(value)}${didYouMean(close)}`);
  }

  wholeNumber(key: string, min: number, max = Number.MAX_SAFE_INTEGER): void {
    const least = min === 1 ? 'a positive integer' : `an integer ≥ ${min}`;
    const expected = max === Number.MAX_SAFE_INTEGER ? least : `an integer from ${min} to ${max}`;
    this.expect(key, expected, (v) => typeof v === 'number' && Number.isSafeInteger(v) && v >= min && v <= max);
  }

  /** The URL of a module on this machine. */
  moduleUrl(key: string, example: string): void {
    const value = this.get(key);
    if (value instanceof URL && value.protocol === 'file:') return;
    this.add(
      key,
      `expected new URL('${example}', import.meta.url), found ${value instanceof URL ? value.href : shown(value)}`,
    );
  }

  /** An array, all of whose elements hold. */
  list(key: string, expected: string, holds: (value: unknown) => boolean): readonly unknown[] {
    const value = this.get(key);
    if (!Array.isArray(value)) {
      this.add(key, `expected an array of ${expected}, found ${shown(value)}`);
      return [];
    }
    const wrong = value.findIndex((one) => !holds(one));
    if (wrong >= 0) this.add(key, `expected ${expected}, found ${shown(value[wrong])} at [${wrong}]`);
    return value;
  }

  /** @param what the names that may not repeat are called, e.g. `names` */
  different(key: string, what: string, names: readonly unknown[]): void {
    const seen = new Set<unknown>();
    for (const name of names) {
      if (seen.has(name)) this.add(key, `expected different ${what}, found ${shown(name)} twice`);
      seen.add(name);
    }
  }

  /** A key that nobody reads is a slip of the finger, and the default in its place one that nobody asked for. */
  only(known: readonly string[]): void {
    for (const key of this.keys().filter((one) => !known.includes(one))) {
      const close = nearest(key, known);
      this.add(
        key,
        `expected no such key${close === undefined ? ` (there are: ${known.join(', ')})` : didYouMean(close)}`,
      );
    }
  }

  /** Takes over the problems of a part. */
  part(part: Declared): void {
    this.problems.push(...part.problems);
  }
}

/** A schema of zod 4; those of other versions have no `_zod`. */
export function isSchema(value: unknown, type?: string): boolean {
  if (typeof value !== 'object' || value === null || !('_zod' in value) || !('safeParse' in value)) return false;
  return type === undefined || (value as { _zod: { def?: { type?: unknown } } })._zod.def?.type === type;
}

function didYouMean(name: string | undefined): string {
  return name === undefined ? '' : ` (did you mean ${name}?)`;
}
