/**
 * @module Builds the package that is published: compiled JavaScript with types, without the Node that the repository pins.
 * `node scripts/pack.ts [FOLDER]` writes the tarball into FOLDER (dist/ unless given) and prints its path as the last line.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const STAGE = join(ROOT, 'dist', 'package');
/** Loaded by dynamic import where its addon works; see docs/dependencies.md. */
const OPTIONAL_PEERS = ['@tensorflow/tfjs-node-gpu'];
const FOLDERS = ['bin', 'configs', 'docs', 'examples', 'templates'];
const COPIED = [...FOLDERS, 'README.md', 'LICENSE'];

interface Manifest {
  readonly [field: string]: unknown;
  readonly exports: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
}

/** The published manifest: the repository's, less what is only for work in it. */
export function packedManifest(manifest: Manifest): Record<string, unknown> {
  const {
    private: _,
    scripts: __,
    devDependencies: ___,
    overrides: ____,
    optionalDependencies,
    exports,
    ...kept
  } = manifest;
  const peers = OPTIONAL_PEERS.map((name) => {
    const version = optionalDependencies[name];
    if (version === undefined) throw new Error(`package.json: expected ${name} in optionalDependencies, found none`);
    return [name, version] as const;
  });
  return {
    ...kept,
    files: [...FOLDERS, 'dist'],
    exports: Object.fromEntries(Object.entries(exports).map(([path, source]) => [path, compiled(source)])),
    peerDependencies: Object.fromEntries(peers),
    peerDependenciesMeta: Object.fromEntries(peers.map(([name]) => [name, { optional: true }])),
  };
}

/** `./src/env/index.ts` as its declaration and its JavaScript. */
function compiled(source: string): string | { readonly types: string; readonly default: string } {
  const stem = source.replace(/^\.\/src\//, './dist/').replace(/\.ts$/, '');
  return stem === source ? source : { types: `${stem}.d.ts`, default: `${stem}.js` };
}

export function pack(destination: string): string {
  rmSync(STAGE, { recursive: true, force: true });
  mkdirSync(STAGE, { recursive: true });
  run(process.execPath, [
    join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc'),
    '-p',
    'tsconfig.build.json',
    '--outDir',
    join(STAGE, 'dist'),
  ]);
  for (const name of COPIED)
    if (existsSync(join(ROOT, name))) cpSync(join(ROOT, name), join(STAGE, name), { recursive: true });
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest;
  writeFileSync(join(STAGE, 'package.json'), `${JSON.stringify(packedManifest(manifest), null, 2)}\n`);
  mkdirSync(destination, { recursive: true });
  const listing = execFileSync('npm', ['pack', '--json', '--pack-destination', destination], {
    cwd: STAGE,
    encoding: 'utf8',
  });
  const [packed] = JSON.parse(listing) as readonly { readonly filename: string }[];
  if (packed === undefined) throw new Error(`npm pack: expected one tarball, found none in ${listing}`);
  return join(destination, packed.filename);
}

function run(command: string, args: readonly string[]): void {
  execFileSync(command, args, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] });
}

if (import.meta.main) console.log(pack(resolve(process.argv[2] ?? join(ROOT, 'dist'))));
