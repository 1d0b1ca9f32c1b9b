import { expect, test } from 'vitest';
import { inspect } from '../../scripts/check-layers.ts';
import { importsOf, readSource } from '../../scripts/layers/source-text.ts';

const findings = (files: Record<string, string>) =>
  inspect(new Map(Object.entries(files))).map(({ file, line, text }) => `${file}:${line} ${text.split(':')[0]}`);

test('an import that points outward is found, an inward one is not', () => {
  expect(
    findings({
      'src/policy/a.ts': "import { x } from '../records/x.ts';\nimport type { E } from '../env/environment.ts';",
      'src/policy/b.ts': "import { x } from '../records/x.ts';\n\nimport { e } from '../env/environment.ts';",
      'src/records/c.ts': "export * from '../train/loop.ts';",
      'src/env/d.ts': "import type { Loop } from '../train/loop.ts';",
      'src/verifiers/e.ts': "import { Realm } from '../env/sandbox/realm.ts';\nimport { p } from '../env/pool.ts';",
      'src/train/f.ts': "const io = await import('../io/run-folder.ts');",
      'src/train/run.ts': "import { RunFolder } from '../io/run-folder.ts';",
    }),
  ).toEqual([
    'src/policy/b.ts:3 policy imports src/env/environment.ts as a value',
    'src/records/c.ts:1 records imports src/train/loop.ts',
    'src/env/d.ts:1 env imports src/train/loop.ts',
    'src/verifiers/e.ts:2 verifiers imports src/env/pool.ts',
    'src/train/f.ts:1 train imports src/io/run-folder.ts',
  ]);
});

test('the trainer and the command line know no concrete environment or verifier', () => {
  expect(
    findings({
      'src/env/toy/world.ts': "import type { CreateWorld } from '../index.ts';",
      'src/env/toy/index.ts': "import { t } from './tasks.ts';",
      'src/verifiers/exact/verify.ts': '',
      'src/train/loop.ts': "import toy from '../env/toy/index.ts';",
      'src/cli/train.ts': "import exact from '../verifiers/exact/index.ts';",
    }),
  ).toEqual(['src/train/loop.ts:1 train knows src/env/toy', 'src/cli/train.ts:1 cli knows src/verifiers/exact']);
});

test('a clock or an unseeded generator outside src/io is found; comments, strings and templates are not code', () => {
  expect(
    findings({
      'src/train/a.ts': [
        '// Math.random()',
        "const text = 'Date.now()';",
        // biome-ignore lint/suspicious/noTemplateCurlyInString: it is source text
        'const template = `performance.now() ${Math.random()} Date.now()`;',
        'const pattern = /Math.random/;',
        'const t = performance\n  .now();',
      ].join('\n'),
      'src/io/clock.ts': 'export const now = () => performance.now();',
    }),
  ).toEqual(['src/train/a.ts:3 Math.random outside src/io', 'src/train/a.ts:5 performance\n  .now outside src/io']);
});

test('imports are told apart from text that looks like one', () => {
  const source = [
    'const text = `import { a } from "./a.ts"`;',
    "import b, { type B } from './b.ts';",
    'export interface C { readonly c: string }',
    "export type { D } from './d.ts';",
    "type E = typeof import('./e.ts');",
    "import './f.ts'; const half = 1 / 2; // import './g.ts'",
    "const url = 'http://x'; import('./h.ts');",
  ].join('\n');
  expect(importsOf(readSource(source))).toEqual([
    { specifier: './b.ts', typeOnly: false, line: 2 },
    { specifier: './d.ts', typeOnly: true, line: 4 },
    { specifier: './f.ts', typeOnly: false, line: 6 },
    { specifier: './e.ts', typeOnly: true, line: 5 },
    { specifier: './h.ts', typeOnly: false, line: 7 },
  ]);
});
