import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { DOCS_FILE, docsText } from '../../scripts/config-docs.ts';
import { SCHEMA_FILE, schemaText } from '../../scripts/config-schema.ts';
import { packedManifest } from '../../scripts/pack.ts';
import { loadConfig } from '../../src/io/config-file.ts';

const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));

test("the editors' JSON Schema is that of the config schema (otherwise: npm run generate)", () => {
  expect(readFileSync(SCHEMA_FILE, 'utf8')).toBe(schemaText());
});

test('docs/configuration.md is that of the config schema (otherwise: npm run generate)', () => {
  expect(readFileSync(DOCS_FILE, 'utf8')).toBe(docsText());
});

test.each(['toy-lookup.yaml', 'toy-lookup-reinforce.yaml', 'toy-lookup-tabular.yaml', 'js-puzzles.yaml'])(
  '%s is a config, and names its schema for editors',
  (file) => {
    const url = new URL(`../../configs/${file}`, import.meta.url);
    expect(readFileSync(url, 'utf8').split('\n')[0]).toBe('# yaml-language-server: $schema=./isogym.schema.json');
    expect(loadConfig({ file: url.pathname, overrides: [], cwd: '/' }).config.name).toBe(file.replace('.yaml', ''));
  },
);

test('the published package pins no Node, takes the GPU binding as an optional peer, and exports types beside code', () => {
  const packed = packedManifest(manifest);
  expect(packed).toMatchObject({
    name: 'isogym',
    type: 'module',
    bin: { isogym: 'bin/isogym.js' },
    dependencies: manifest.dependencies,
    peerDependencies: { '@tensorflow/tfjs-node-gpu': '4.22.0' },
    peerDependenciesMeta: { '@tensorflow/tfjs-node-gpu': { optional: true } },
  });
  for (const field of ['optionalDependencies', 'devDependencies', 'scripts', 'overrides'])
    expect(packed).not.toHaveProperty(field);
  expect(packed.exports).toMatchObject({ './env': { types: './dist/env/index.d.ts', default: './dist/env/index.js' } });
});
