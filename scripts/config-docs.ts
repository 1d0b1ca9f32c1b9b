/** @module Writes docs/configuration.md from the config schema. `node scripts/config-docs.ts` */
import { writeFileSync } from 'node:fs';
import { expectation, jsonSchema, type SchemaNode } from '../src/io/expectation.ts';
import { configSchema } from '../src/train/config.ts';

export const DOCS_FILE = new URL('../docs/configuration.md', import.meta.url);

const INTRODUCTION = `# Configuration

Written by \`node scripts/config-docs.ts\` from the schema in src/train/config.ts; a test says when it is out of date.

A config is one YAML 1.2 file of plain keys and values. \`isogym train --config FILE\` looks for a bare name in the working folder, then among the configs
that come with isogym (\`configs/\`). Any key can be replaced on the command line, \`group.size=4\`; the value is YAML, and of two for one key the later wins.
\`--dry-run\` prints the config with every default filled in. Unknown keys, duplicate keys and wrong values are errors, all of them told at once.

For completion and checks in an editor, begin a config with \`# yaml-language-server: $schema=PATH/configs/isogym.schema.json\`.
`;

export function docsText(): string {
  return `${[INTRODUCTION, ...sections('', jsonSchema(configSchema))].join('\n')}`;
}

/** A section and those under it. `prefix` is the section's own path. */
function sections(prefix: string, node: SchemaNode): readonly string[] {
  const entries = Object.entries(node.properties ?? {});
  const required = new Set(node.required);
  const path = (key: string) => (prefix === '' ? key : `${prefix}.${key}`);
  const rows = entries
    .filter(([, child]) => !isSection(child))
    .map(
      ([key, child]) =>
        `| \`${path(key)}\` | ${expectation(child)} | ${standard(child, required.has(key))} | ${child.description ?? ''} |`,
    );
  const table = rows.length === 0 ? [] : ['| key | value | default | meaning |', '|---|---|---|---|', ...rows, ''];
  const inner = entries
    .filter(([, child]) => isSection(child))
    .flatMap(([key, child]) => section(path(key), child, required.has(key)));
  return [...table, ...inner];
}

function section(path: string, node: SchemaNode, required: boolean): readonly string[] {
  const absent = required ? ' Required.' : '';
  const heading = [`## ${path}`, '', `${node.description ?? ''}${absent}`, ''];
  if (node.oneOf === undefined) return [...heading, ...sections(path, node)];
  return [
    ...heading,
    ...node.oneOf.flatMap((variant) => [
      `### ${path}.kind: ${String(variant.properties?.kind?.const)}`,
      '',
      ...sections(path, variant),
    ]),
  ];
}

function isSection(node: SchemaNode): boolean {
  return node.properties !== undefined || node.oneOf !== undefined;
}

function standard(node: SchemaNode, required: boolean): string {
  if (node.default !== undefined) return `\`${JSON.stringify(node.default)}\``;
  return required ? 'required' : '';
}

if (import.meta.main) writeFileSync(DOCS_FILE, docsText());
