/**
 * @module Checks that imports point inward and that nothing outside src/io reads a clock or an unseeded generator. Import
 * cycles are biome's to find. `node scripts/check-layers.ts`
 */
import { globSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { importsOf, lineAt, readSource } from './layers/source-text.ts';

/** Who may import what, as values; `types` only as types. A layer may always import itself and `records`. */
const LAYERS: Readonly<Record<string, { readonly values: readonly string[]; readonly types?: readonly string[] }>> = {
  records: { values: [] },
  policy: { values: [], types: ['env'] },
  env: { values: ['policy'] },
  verifiers: { values: ['env/sandbox'], types: ['env/environment.ts'] },
  train: { values: ['env', 'policy', 'verifiers'] },
  check: { values: ['env', 'policy/grammar', 'policy/tokenizer.ts', 'verifiers', 'io'] },
  io: { values: ['train/config.ts'], types: ['train'] },
  setup: { values: ['policy/backends', 'io/durable.ts'] },
  exercises: { values: ['env', 'policy', 'verifiers', 'train', 'io'] },
  bench: { values: ['env', 'policy', 'verifiers', 'train'] },
  cli: { values: ['env', 'policy', 'verifiers', 'train', 'io', 'check', 'exercises', 'bench', 'setup'] },
};

/** The files of src/train that touch disk, clock and process on behalf of the pure ones. */
const SHELL = ['run', 'open-run', 'foundation', 'rig', 'held-out', 'evaluate-run', 'replay-run', 'index'].map(
  (file) => `src/train/${file}.ts`,
);

const BANNED = [
  /\bMath\s*\.\s*random\b/g,
  /\bDate\s*\.\s*now\b/g,
  /\bnew\s+Date\s*\(\s*\)/g,
  /\bperformance\s*\.\s*now\b/g,
  /\bprocess\s*\.\s*hrtime\b/g,
];

export interface Finding {
  readonly file: string;
  readonly line: number;
  readonly text: string;
}

/** What is wrong with these sources; keys are paths from the repository's root, with slashes. */
export function inspect(sources: ReadonlyMap<string, string>): readonly Finding[] {
  const concrete = concreteFolders(sources.keys());
  return [...sources].flatMap(([file, source]) => {
    const text = readSource(source);
    const imports = importsOf(text).flatMap(({ specifier, typeOnly, line }) => {
      if (!specifier.startsWith('.')) return [];
      const target = posix.join(posix.dirname(file), specifier);
      const problem = importProblem(file, target, typeOnly, concrete);
      return problem === undefined ? [] : [{ file, line, text: problem }];
    });
    return [...imports, ...banned(file, text.bare)];
  });
}

function banned(file: string, bare: string): readonly Finding[] {
  if (file.startsWith('src/io/')) return [];
  return BANNED.flatMap((pattern) =>
    [...bare.matchAll(pattern)].map((match) => ({
      file,
      line: lineAt(bare, match.index),
      text: `${match[0]} outside src/io: take the time or a generator (src/records/random.ts) as an argument`,
    })),
  );
}

/** Environments and verifiers that come with isogym: folders with the file that runs in the isolate. */
function concreteFolders(files: Iterable<string>): readonly string[] {
  return [...files].filter((file) => /^src\/(env|verifiers)\/[^/]+\/(world|verify)\.ts$/.test(file)).map(posix.dirname);
}

function importProblem(
  file: string,
  target: string,
  typeOnly: boolean,
  concrete: readonly string[],
): string | undefined {
  const layer = layerOf(file);
  if (layer === undefined) return undefined;
  const from = concrete.find((folder) => file.startsWith(`${folder}/`));
  const into = concrete.find((folder) => target.startsWith(`${folder}/`));
  if (into !== undefined && into !== from && layer !== 'exercises') {
    return `${layer} knows ${into}: name it in a config, or write what you need for any environment or verifier`;
  }
  if (target.startsWith(`src/${layer}/`) || target.startsWith('src/records/')) return undefined;
  if (layer === 'train' && SHELL.includes(file) && target.startsWith('src/io/')) return undefined;
  const { values, types = [] } = LAYERS[layer] ?? { values: [] };
  const within = (allowed: readonly string[]) =>
    allowed.some((part) => target === `src/${part}` || target.startsWith(`src/${part}/`));
  if (within(values) || (typeOnly && within(types))) return undefined;
  return within(types)
    ? `${layer} imports ${target} as a value: use \`import type\`, or move what both need to src/records`
    : `${layer} imports ${target}: imports point inward, cli → train → policy, env, verifiers → records; take it as an argument, or move it to src/records`;
}

function layerOf(file: string): string | undefined {
  const [root, layer = '', rest] = file.split('/');
  return root === 'src' && rest !== undefined ? layer : undefined;
}

function main(): void {
  const root = join(import.meta.dirname, '..');
  const files = globSync('src/**/*.ts', { cwd: root }).sort();
  const findings = inspect(new Map(files.map((file) => [file, readFileSync(join(root, file), 'utf8')])));
  for (const { file, line, text } of findings) console.error(`${file}:${line} ${text}`);
  console.log(`${files.length} files, ${findings.length} wrong`);
  if (findings.length > 0) process.exitCode = 1;
}

if (import.meta.main) main();
