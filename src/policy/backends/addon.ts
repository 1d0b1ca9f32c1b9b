/**
 * @module Where the compiled addon of tfjs-node lies: in the user's own folder, where `isogym setup` has put it, or in the package
 * itself, where somebody built it by hand. Only finds; `native.ts` loads.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { z } from 'zod';

/** The package whose JavaScript and C++ both routes use. */
export const ADDON_PACKAGE = '@tensorflow/tfjs-node-gpu';
const PACKAGES = [ADDON_PACKAGE, '@tensorflow/tfjs-node'] as const;
const ADDON_FILE = 'tfjs_binding.node';
const require = createRequire(import.meta.url);

export const SETUP_FORMAT = 'isogym.setup/1';

const manifestSchema = z.object({
  format: z.literal(SETUP_FORMAT),
  kind: z.enum(['native', 'cuda']),
  /** Version of the library, as it says itself. */
  tensorflow: z.string(),
  /** `pip`, `wheels`, or the folder of the TensorFlow that was there before. */
  from: z.string(),
  wheels: z.array(z.object({ project: z.string(), version: z.string(), sha256: z.string() })),
  /** The package that the addon was built from. */
  addon: z.string(),
  compiler: z.string(),
  /** What the proof ran on. */
  device: z.string(),
  /** Memory of the GPU; null on the CPU, and where no tool of the driver tells. */
  memoryMiB: z.number().nullable(),
  bytes: z.number(),
});

/** What a setup did; `setup.json` in its folder. */
export type SetupManifest = z.infer<typeof manifestSchema>;

/** Folder of all setups: `ISOGYM_HOME`, or `isogym` in the user's data folder (XDG Base Directory). */
export function setupHome(env: NodeJS.ProcessEnv = process.env): string {
  return env.ISOGYM_HOME || join(env.XDG_DATA_HOME || join(homedir(), '.local', 'share'), 'isogym');
}

export function setupFolder(kind: SetupManifest['kind']): string {
  return join(setupHome(), 'tensorflow', kind);
}

/** Undefined where this kind is not set up, or not by this version of isogym: whatever else the file is, setting up replaces it. */
export function readSetup(kind: SetupManifest['kind']): SetupManifest | undefined {
  const file = join(setupFolder(kind), 'setup.json');
  try {
    return manifestSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return undefined;
  }
}

export function addonIn(folder: string): string {
  return join(folder, 'addon', ADDON_FILE);
}

export interface Addon {
  /** The package whose JavaScript goes with it. */
  readonly packageName: string;
  readonly file: string;
  /** Whether its library may know a GPU. */
  readonly cuda: boolean;
  readonly setUpBy: 'isogym' | 'hand';
}

/**
 * All that are there, the best for `cuda` first. `ISOGYM_ADDON_FOLDER` names the one folder of a setup to take in place of all
 * others: setting up proves its addon so, before it stands where others find it.
 */
export function findAddons(): readonly Addon[] {
  const only = process.env.ISOGYM_ADDON_FOLDER;
  const setUp = (folder: string, cuda: boolean): Addon => ({
    packageName: ADDON_PACKAGE,
    file: addonIn(folder),
    cuda,
    setUpBy: 'isogym',
  });
  if (only) return [setUp(only, true)];
  const ours = packageFolder(ADDON_PACKAGE) === undefined ? [] : (['cuda', 'native'] as const);
  return [
    ...ours.flatMap((kind) => (readSetup(kind) === undefined ? [] : [setUp(setupFolder(kind), kind === 'cuda')])),
    ...PACKAGES.flatMap((name): Addon[] => {
      const file = builtIn(packageFolder(name));
      return file === undefined ? [] : [{ packageName: name, file, cuda: name === ADDON_PACKAGE, setUpBy: 'hand' }];
    }),
  ].filter(({ file }) => existsSync(file));
}

export function packageFolder(name: string): string | undefined {
  try {
    return dirname(require.resolve(`${name}/package.json`));
  } catch {
    return undefined;
  }
}

function builtIn(folder: string | undefined): string | undefined {
  if (folder === undefined || !existsSync(join(folder, 'lib'))) return undefined;
  return readdirSync(join(folder, 'lib'))
    .map((napi) => join(folder, 'lib', napi, ADDON_FILE))
    .find((file) => existsSync(file));
}
