/** @module The arguments of a call, checked by the schema of its tool: as the tool gets them, or all that is wrong with them. */
import type { z } from 'zod';
import { messageOf } from '../records/errors.ts';
import type { Json, JsonObject } from '../records/json.ts';
import { nearest } from '../records/nearest.ts';
import type { Tool } from './tool.ts';

interface Checked {
  readonly tool: Tool;
  readonly json: string;
}

/**
 * What arguments came to that a format read in a text that comes again and again; undefined where they are still to be checked. Schemas
 * are pure (see `Tool`), or an episode would depend on which others its worker has run; so it is what they would come to once more.
 */
const known = new WeakMap<JsonObject, Checked | undefined>();
/** Longer ones [UTF-16 code units] are not kept: a default or a transform can make much of little. */
const MAX_KNOWN = 1024;

/** What these arguments come to is worth remembering: the same object comes again, and is frozen to its depth. */
export function comesAgain(args: JsonObject): void {
  known.set(args, undefined);
}

/** The arguments as the tool gets them (defaults filled in), or everything that is wrong with them. */
export function validated(
  tool: Tool,
  args: JsonObject,
): { readonly json: string } | { readonly problems: readonly string[] } {
  const before = known.get(args);
  if (before?.tool === tool) return before;
  try {
    if (hasProtoKey(args)) return { problems: ['the key "__proto__" is refused: leave it out'] };
    const parsed = tool.parameters.safeParse(args);
    if (parsed.success) {
      const checked = { tool, json: JSON.stringify(parsed.data) };
      if (checked.json.length <= MAX_KNOWN && known.has(args)) known.set(args, checked);
      return checked;
    }
    return { problems: parsed.error.issues.flatMap((issue) => problemsIn(issue, tool, args)) };
  } catch (error) {
    // Nesting that overflows the stack, or a refinement of the author's that throws.
    return { problems: [`they could not be checked (${messageOf(error)})`] };
  }
}

function problemsIn(issue: z.core.$ZodIssue, tool: Tool, args: JsonObject): readonly string[] {
  if (issue.code === 'unrecognized_keys') {
    const known = issue.path.length === 0 ? Object.keys(tool.parameters.shape) : [];
    const there = known.length > 0 ? ` (there are: ${known.join(', ')})` : '';
    return issue.keys.map((key) => `unknown argument ${quoted(key)}${suggestion(nearest(key, known)) || there}`);
  }
  const path = issue.path.join('.');
  const found = issue.path.reduce<Json | undefined>((at, key) => (at as JsonObject | undefined)?.[String(key)], args);
  if (found === undefined) return [`missing argument ${quoted(path)}`];
  const options = issue.code === 'invalid_value' ? issue.values.filter((value) => typeof value === 'string') : [];
  const close = typeof found === 'string' ? nearest(found, options) : undefined;
  return [`${path}: ${issue.message}, found ${JSON.stringify(found).slice(0, 100)}${suggestion(close)}`];
}

function hasProtoKey(value: Json): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return Object.hasOwn(value, '__proto__') || Object.values(value).some(hasProtoKey);
}

export function quoted(name: string): string {
  return JSON.stringify(name.slice(0, 60));
}

export function suggestion(name: string | undefined): string {
  return name === undefined ? '' : ` (did you mean ${quoted(name)}?)`;
}
