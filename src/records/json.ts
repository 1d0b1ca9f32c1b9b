/** @module JSON values, as they cross the line into an isolate, between threads and onto disk. */

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };

/** Levels of a value; deeper ones overflow a stack somewhere on their way. */
export const MAX_DEPTH = 500;

/**
 * Why a value is not JSON, as `path: expected …, found …`; undefined where it is, that is where it comes back from
 * `JSON.parse(JSON.stringify(value))` as it was. Runs none of the value's code.
 * @param path what the value itself is called, e.g. `public`
 */
export function jsonProblem(value: unknown, path: string): string | undefined {
  const open = new Set<object>();
  const visit = (at: unknown, here: string): string | undefined => {
    const is = (found: string) => `${here}: expected a JSON value, found ${found}`;
    if (at === null || typeof at === 'string' || typeof at === 'boolean') return undefined;
    if (typeof at === 'number') return Number.isFinite(at) ? undefined : is(String(at));
    if (typeof at !== 'object') return is(at === undefined ? 'undefined' : `a ${typeof at}`);
    if (open.has(at)) return is('an object that contains itself');
    if (open.size === MAX_DEPTH) return `${path}: expected at most ${MAX_DEPTH} levels, found more`;
    const prototype: unknown = Object.getPrototypeOf(at);
    if (!Array.isArray(at) && prototype !== null && Object.getPrototypeOf(prototype) !== null) {
      return is('an instance of a class (such as a Map or a Date)');
    }
    open.add(at);
    for (const key of Object.keys(at)) {
      const { value: child, get } = Object.getOwnPropertyDescriptor(at, key) ?? {};
      const place = Array.isArray(at) ? `${here}[${key}]` : `${here}.${key}`;
      const problem = get === undefined ? visit(child, place) : `${place}: expected a JSON value, found a getter`;
      if (problem !== undefined) return problem;
    }
    if (Array.isArray(at) && Object.keys(at).length !== at.length) return is('an array with holes or further members');
    open.delete(at);
    return undefined;
  };
  return visit(value, path);
}

/** Levels of a record and of any file: such values stand some levels down in it. */
export const MAX_LEVELS = 2 * MAX_DEPTH;

/** Whether objects and arrays nest in it more than `levels` deep; 1 is `[]`. */
export function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  for (const child of Array.isArray(value) ? value : Object.values(value)) {
    if (isDeeper(child, levels - 1)) return true;
  }
  return false;
}

/**
 * The value of a JSON text that somebody may have made by hand. `JSON.parse` reads any depth; all that walks, copies or writes a
 * deep value overflows the stack.
 * @throws Error that says in one line what the text is
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (isDeeper(value, MAX_LEVELS)) throw new Error(`JSON that nests more than ${MAX_LEVELS} levels deep`);
  return value;
}

/** A JSON value with all that is in it frozen, so that nobody changes what others are still to read. What is frozen already is taken to be so to its depth. */
export function frozen<T extends Json>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const child of Object.values(value)) frozen(child as Json);
  return Object.freeze(value);
}

const texts = new WeakMap<object, string>();

/** The JSON of a value that is never changed: written once for each object, since the rollouts of a task share theirs. */
export function jsonText(value: Json): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const known = texts.get(value);
  if (known !== undefined) return known;
  const text = JSON.stringify(value);
  texts.set(value, text);
  return text;
}
