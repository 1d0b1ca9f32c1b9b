/**
 * @module Installs the packed tarball in an empty folder, as a user would, and trains there. `node scripts/try-package.ts`
 * Its last line is `N passed, N failed`.
 */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { pack } from './pack.ts';

const ROOT = join(import.meta.dirname, '..');

/** Fails to compile where a type of the package is lost: an unresolved import would be `any`, and the error expected here would not come. */
const CONSUMER = `
import { type Environment, defineEnvironment } from 'isogym/env';
import { type Verifier, defineVerifier } from 'isogym/verifiers';
import type { Policy } from 'isogym/policy';
import { type Config, train } from 'isogym/train';
import { gymEnvironment } from 'isogym/gym';
import { mountGym, replayGym } from 'isogym/gym/inside';
import { type CheckReport, checkEnvironment } from 'isogym/check';
import * as everything from 'isogym';
export const used = [defineEnvironment, defineVerifier, train, checkEnvironment, gymEnvironment, mountGym, replayGym, everything];
// @ts-expect-error
export const environment: Environment = 1;
// @ts-expect-error
export const verifier: Verifier = 1;
// @ts-expect-error
export const policy: Policy = 1;
// @ts-expect-error
export const config: Config = 1;
// @ts-expect-error
export const report: CheckReport = 1;
`;
const TINY = [
  'iterations=2',
  'tasks.train=20',
  'tasks.heldOut=10',
  'evaluation.tasks=10',
  'batch.groups=2',
  'group.size=2',
];

const folder = mkdtempSync(join(tmpdir(), 'isogym-package-'));
const counts = { passed: 0, failed: 0 };

function check(name: string, holds: () => string | undefined): void {
  let problem: string | undefined;
  try {
    problem = holds();
  } catch (error) {
    problem = String(error);
  }
  counts[problem === undefined ? 'passed' : 'failed'] += 1;
  console.log(problem === undefined ? `ok      ${name}` : `not ok  ${name}: ${problem}`);
}

/** In the empty folder, under the Node that runs this script. */
function run(command: string, ...args: readonly string[]): SpawnSyncReturns<string> {
  // The settings of this repository's .npmrc, which npm hands down to what it runs, are not a user's.
  const { npm_config_ignore_scripts: _, npm_config_omit_lockfile_registry_resolved: __, ...env } = process.env;
  const path = `${dirname(process.execPath)}${delimiter}${env.PATH ?? ''}`;
  return spawnSync(command, args, { cwd: folder, encoding: 'utf8', env: { ...env, PATH: path } });
}

function failure({ status, stdout, stderr }: SpawnSyncReturns<string>): string | undefined {
  return status === 0 ? undefined : `exit code ${status}\n${stdout}${stderr}`;
}

function trained(config: string, ...more: readonly string[]): string | undefined {
  const result = run('npx', 'isogym', 'train', '--config', config, '--json', ...TINY, ...more);
  if (result.status !== 0) return failure(result);
  const summary = JSON.parse(result.stdout) as { readonly run?: string; readonly policies?: readonly unknown[] };
  if (typeof summary.run !== 'string' || !summary.policies?.length)
    return `a summary without its parts: ${result.stdout}`;
  const metrics = readFileSync(join(folder, summary.run, 'metrics.jsonl'), 'utf8').match(/"phase":"train"/g) ?? [];
  return metrics.length === 2 ? undefined : `expected metrics of 2 iterations, found ${metrics.length}`;
}

try {
  let tarball = '';
  check('the package is built', () => {
    tarball = pack(folder);
    return undefined;
  });
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n');
  check('the tarball installs in an empty folder', () =>
    failure(run('npm', 'install', '--no-audit', '--no-fund', tarball)),
  );
  check('its manifest pins no Node and has no development scripts', () => {
    const manifest = readFileSync(join(folder, 'node_modules', 'isogym', 'package.json'), 'utf8');
    return /"node-(linux|bin|win)|"private"|"scripts"|"devDependencies"|"optionalDependencies"/.exec(manifest)?.[0];
  });
  check('what its documents link to is there', () => {
    const root = join(folder, 'node_modules', 'isogym');
    const documents = ['README.md', ...readdirSync(join(root, 'docs')).map((name) => join('docs', name))];
    const dead = documents
      .filter((name) => name.endsWith('.md'))
      .flatMap((name) =>
        [...readFileSync(join(root, name), 'utf8').matchAll(/\]\(([^)#:]+)(#[^)]*)?\)/g)]
          .map(([, target = '']) => target)
          .filter((target) => !existsSync(join(root, dirname(name), target)))
          .map((target) => `${name}: ${target}`),
      );
    return dead.length === 0 ? undefined : dead.join(', ');
  });
  check('the installed command says its version', () => failure(run('npx', 'isogym', '--version')));
  check('the tabular config trains from the package', () => trained('toy-lookup-tabular.yaml'));
  check('the transformer config trains from the package', () =>
    trained('toy-lookup.yaml', 'warmStart.steps=2', 'warmStart.episodes=4', 'warmStart.demonstrations=8'),
  );
  check('and with its learner in a process of its own', () =>
    trained('toy-lookup.yaml', 'rollouts.staleness=1', 'warmStart.steps=2', 'warmStart.demonstrations=8'),
  );
  check('isogym init env writes an environment', () => failure(run('npx', 'isogym', 'init', 'env', 'mine')));
  check('that passes isogym check', () =>
    failure(run('npx', 'isogym', 'check', 'mine/environment.ts', '--verifier', 'mine/verifier.ts')),
  );
  check('and its own test', () => failure(run(process.execPath, '--test', 'mine/check.test.ts')));
  check('and trains', () => trained('mine/config.yaml'));
  check('a class with reset and step passes isogym check', () => {
    cpSync(join(ROOT, 'examples', 'frozen-lake'), join(folder, 'lake'), { recursive: true });
    return failure(run('npx', 'isogym', 'check', 'lake/environment.ts', '--verifier', 'lake/verifier.ts'));
  });
  check('its types reach a user, and what init writes holds by them', () => {
    writeFileSync(join(folder, 'consumer.ts'), CONSUMER);
    const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
    const options = [
      ...['--noEmit', '--strict', '--skipLibCheck', '--allowImportingTsExtensions'],
      ...['--module', 'nodenext', '--target', 'es2024', '--types', 'node'],
      ...['--typeRoots', join(ROOT, 'node_modules', '@types')],
    ];
    const own = ['mine', 'lake'].flatMap((part) => readdirSync(join(folder, part)).map((name) => join(part, name)));
    const sources = own.filter((name) => name.endsWith('.ts'));
    return failure(run(process.execPath, tsc, ...options, 'consumer.ts', ...sources));
  });
} finally {
  rmSync(folder, { recursive: true, force: true });
}
console.log(`${counts.passed} passed, ${counts.failed} failed`);
if (counts.failed > 0) process.exitCode = 1;
