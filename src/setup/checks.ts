/** @module What a setup needs of the machine, looked at before anything is fetched: each missing thing is one line, and the command that brings it. */
import { spawnSync } from 'node:child_process';
import { existsSync, statfsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { makeFolders } from '../io/durable.ts';
import { ADDON_PACKAGE, packageFolder, setupHome } from '../policy/backends/addon.ts';
import { nvidiaDriver } from '../policy/backends/gpu.ts';
import { IsogymError, inputError, messageOf } from '../records/errors.ts';
import type { SetupKind } from './wheels.ts';

const require = createRequire(import.meta.url);

export const HOME_HINT = 'ISOGYM_HOME names another folder to keep setups in.';

/** The oldest driver of CUDA 12 (CUDA's release notes, table 2: minor version compatibility). */
const OLDEST_DRIVER = '525.60.13';

export interface Tools {
  /** E.g. `g++`; `CXX` says another. */
  readonly compiler: string;
  readonly compilerVersion: string;
  /** Folder of node_api.h. */
  readonly headers: string;
  /** Folder of the package whose sources are compiled. */
  readonly addon: string;
  readonly addonVersion: string;
}

export interface Missing {
  /** What is missing, in one line. */
  readonly what: string;
  /** To paste. */
  readonly command: string;
}

/** @throws SETUP_UNFIT naming every missing thing at once. */
export function checkMachine(options: {
  readonly kind: SetupKind;
  /** Whether pip will be asked. */
  readonly fetches: boolean;
  /** What will be written at most [bytes]. */
  readonly needs: number;
  readonly withoutGpu: boolean;
}): Tools {
  const missing: Missing[] = [];
  const need = <T>(found: T | undefined, what: string, command: string): T | undefined => {
    if (found === undefined) missing.push({ what, command });
    return found;
  };
  need(
    process.platform === 'linux' && process.arch === 'x64' ? true : undefined,
    `the pinned wheels are for linux-x64, this is ${process.platform}-${process.arch}`,
    'isogym train --config toy-lookup.yaml backend=wasm',
  );
  const addon = need(
    packageFolder(ADDON_PACKAGE),
    `the package ${ADDON_PACKAGE} is not installed`,
    `npm install --ignore-scripts ${ADDON_PACKAGE}@4.22.0`,
  );
  const compiler = process.env.CXX || 'g++';
  const compilerVersion = need(
    firstLine(compiler, ['--version']),
    `no C++ compiler: ${compiler} does not run`,
    'sudo apt-get install -y g++',
  );
  const headers = need(
    nodeHeaders(),
    `Node's headers (node_api.h) are not beside ${process.execPath}`,
    'npm install --no-save node-api-headers',
  );
  if (options.fetches) {
    need(firstLine('python3', ['-m', 'pip', '--version']), 'pip does not run', 'sudo apt-get install -y python3-pip');
  }
  const home = setupHome();
  try {
    makeFolders(home);
  } catch (cause) {
    throw inputError('SETUP_FOLDER', `expected a folder that can be made, found ${messageOf(cause)}`, HOME_HINT);
  }
  const { bavail, bsize } = statfsSync(home);
  const free = bavail * bsize;
  need(
    free >= options.needs ? true : undefined,
    `${gigabytes(options.needs)} are needed below ${home}, and ${gigabytes(free)} are free`,
    `ISOGYM_HOME=/a/larger/disk isogym setup ${options.kind}`,
  );
  if (options.kind === 'cuda' && !options.withoutGpu) missing.push(...missingGpu());
  if (addon === undefined || compilerVersion === undefined || headers === undefined || missing.length > 0) {
    throw unfit(options.kind, missing);
  }
  const { version } = require(join(addon, 'package.json')) as { version: string };
  return { compiler, compilerVersion, headers, addon, addonVersion: version };
}

/** @throws SETUP_UNFIT where CUDA would find no GPU to use */
export function checkGpu(): void {
  const missing = missingGpu();
  if (missing.length > 0) throw unfit('cuda', missing);
}

function missingGpu(): readonly Missing[] {
  const driver = nvidiaDriver();
  if (driver === undefined) {
    return [
      {
        what: 'the kernel has no NVIDIA driver, so there is no GPU to use',
        command: 'isogym setup native',
      },
    ];
  }
  if (older(driver.version, OLDEST_DRIVER)) {
    return [
      {
        what: `NVIDIA driver ${driver.version} is too old: CUDA 12 needs ${OLDEST_DRIVER} or later`,
        command: 'sudo ubuntu-drivers install   # Debian, with non-free: sudo apt-get install -y nvidia-driver',
      },
    ];
  }
  return driver.gpus.length > 0
    ? []
    : [{ what: `NVIDIA driver ${driver.version} knows no GPU`, command: 'isogym setup native' }];
}

/** Whether version `a` comes before `b`; one that is not numbers does not. */
export function older(a: string, b: string): boolean {
  const [x, y] = [a, b].map((version) => version.split('.').map(Number)) as [number[], number[]];
  if (x.some(Number.isNaN)) return false;
  for (let i = 0; i < Math.max(x.length, y.length); i++) {
    const difference = (x[i] ?? 0) - (y[i] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return false;
}

/** Node's own, or those of the package node-api-headers; the addon needs no others. */
function nodeHeaders(): string | undefined {
  const own = join(dirname(dirname(process.execPath)), 'include', 'node');
  if (existsSync(join(own, 'node_api.h'))) return own;
  try {
    return (require('node-api-headers') as { include_dir: string }).include_dir;
  } catch {
    return undefined;
  }
}

function firstLine(command: string, args: readonly string[]): string | undefined {
  const { status, stdout } = spawnSync(command, args, { encoding: 'utf8' });
  return status === 0 ? stdout.split('\n')[0]?.trim() : undefined;
}

export function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}

function unfit(kind: SetupKind, missing: readonly Missing[]): IsogymError {
  return new IsogymError('SETUP_UNFIT', missing.map(({ what }) => what).join('\n'), {
    hint: [
      ...missing.map(({ command }) => command),
      ...(kind === 'cuda' ? ['isogym setup cuda --without-gpu prepares a machine that gets its GPU later'] : []),
    ].join('\n      '),
  });
}
