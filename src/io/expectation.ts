/** @module What a schema expects at a place, in words: for error messages and for docs/configuration.md. */
import { z } from 'zod';

/** The part of JSON Schema (draft 7, which editors know best) that zod writes for the config. */
export interface SchemaNode {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly multipleOf?: number;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | SchemaNode;
  readonly anyOf?: readonly SchemaNode[];
  readonly oneOf?: readonly SchemaNode[];
}

/** The JSON Schema of what may be written: keys with a default are optional in it. What has no JSON Schema is any value. */
export function jsonSchema(schema: z.ZodType): SchemaNode {
  return z.toJSONSchema(schema, { io: 'input', target: 'draft-7', unrepresentable: 'any' }) as SchemaNode;
}

/** The node at `path`, where `data` chooses between the variants that a `kind` tells apart. Undefined where the schema ends before. */
export function nodeAt(schema: SchemaNode, path: readonly PropertyKey[], data: unknown): SchemaNode | undefined {
  const node = variantFor(schema, data);
  const [key, ...rest] = path;
  if (key === undefined || node === undefined) return node;
  const open = typeof node.additionalProperties === 'object' ? node.additionalProperties : undefined;
  const child = node.properties?.[String(key)] ?? open;
  return child === undefined ? undefined : nodeAt(child, rest, childOf(data, key));
}

function variantFor(node: SchemaNode, data: unknown): SchemaNode | undefined {
  if (node.oneOf === undefined) return node;
  const kind = childOf(data, 'kind');
  return (
    node.oneOf.find((variant) => variant.properties?.kind?.const === kind) ?? {
      type: 'object',
      properties: { kind: { enum: node.oneOf.map((variant) => variant.properties?.kind?.const) } },
    }
  );
}

export function childOf(data: unknown, key: PropertyKey): unknown {
  if (typeof data !== 'object' || data === null || !Object.hasOwn(data, key)) return undefined;
  return (data as Record<PropertyKey, unknown>)[key];
}

/** The values that a place is restricted to, where it is. */
export function choices(node: SchemaNode): readonly string[] {
  if (node.const !== undefined) return [String(node.const)];
  if (node.enum !== undefined) return node.enum.map(String);
  return node.anyOf?.flatMap(choices) ?? [];
}

/** e.g. `a whole number of at least 1, or auto`. */
export function expectation(node: SchemaNode): string {
  if (node.anyOf !== undefined) return node.anyOf.map(expectation).join(', or ');
  if (node.const !== undefined) return String(node.const);
  if (node.enum !== undefined) return node.enum.length === 1 ? String(node.enum[0]) : `one of ${node.enum.join(', ')}`;
  switch (node.type) {
    case 'integer':
      return `a whole number${bounds(node)}`;
    case 'number':
      return `a number${bounds(node)}`;
    case 'string':
      return node.pattern === undefined ? 'a text' : `a text that matches ${node.pattern}`;
    case 'boolean':
      return 'true or false';
    default:
      return node.properties === undefined && node.type !== 'object' && node.oneOf === undefined
        ? 'a value'
        : 'a section of keys';
  }
}

function bounds(node: SchemaNode): string {
  const low = node.minimum === Number.MIN_SAFE_INTEGER ? undefined : node.minimum;
  const high = node.maximum === Number.MAX_SAFE_INTEGER ? undefined : node.maximum;
  const parts: string[] = [];
  if (node.exclusiveMinimum !== undefined) parts.push(`above ${node.exclusiveMinimum}`);
  if (low !== undefined && high !== undefined) parts.push(`from ${low} to ${high}`);
  else if (low !== undefined) parts.push(`of at least ${low}`);
  else if (high !== undefined) parts.push(`of at most ${high}`);
  if (node.exclusiveMaximum !== undefined) parts.push(`below ${node.exclusiveMaximum}`);
  if (node.multipleOf !== undefined) parts.push(`a multiple of ${node.multipleOf}`);
  return parts.length === 0 ? '' : ` ${parts.join(' and ')}`;
}

/** What was found, short enough for one line; `undefined` is nothing. */
export function found(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'nothing (null)';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a section of keys';
  if (typeof value === 'number') {
    return Number.isInteger(value) && !Number.isSafeInteger(value) ? `${value}, beyond ±(2^53 − 1)` : String(value);
  }
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 57)}…"` : text;
}
