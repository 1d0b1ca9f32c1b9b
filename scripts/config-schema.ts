/** @module Writes the JSON Schema that editors check a config with. `node scripts/config-schema.ts` */
import { writeFileSync } from 'node:fs';
import { jsonSchema } from '../src/io/expectation.ts';
import { configSchema } from '../src/train/config.ts';

export const SCHEMA_FILE = new URL('../configs/isogym.schema.json', import.meta.url);

export function schemaText(): string {
  return `${JSON.stringify(jsonSchema(configSchema), null, 2)}\n`;
}

if (import.meta.main) writeFileSync(SCHEMA_FILE, schemaText());
