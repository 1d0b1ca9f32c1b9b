/** @module A setup from end to end. It is made in a folder beside its place and moved there whole: what others find is finished or not there. */
import { existsSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { makeFolders, writeDurably } from '../io/durable.ts';
import { ADDON_PACKAGE, readSetup, SETUP_FORMAT, type SetupManifest, setupFolder } from '../policy/backends/addon.ts';
import { IsogymError, messageOf } from '../records/errors.ts';
import { buildAddon, libraryIn } from './build.ts';
import { checkGpu, checkMachine, gigabytes, HOME_HINT, type Tools } from './checks.ts';
import { download, verified } from './fetch.ts';
import type { Proof } from './proof-process.ts';
import { proveSetup } from './prove.ts';
import { isNeeded, KEPT_BYTES, type SetupKind, TENSORFLOW, totalBytes, WHEELS } from './wheels.ts';
import { unzip } from './zip.ts';

/** Where TensorFlow comes from. */
export type Source =
  | { readonly from: 'pip' }
  | { readonly from: 'wheels'; readonly folder: string }
  | { readonly from: 'tensorflow'; readonly folder: string };

export interface InstallOptions {
  readonly kind: SetupKind;
  readonly source: Source;
  /** Goes on although there is no GPU; the proof then runs on the CPU. */
  readonly withoutGpu: boolean;
  readonly note: (text: string) => void;
  /** Called once before anything is fetched; false ends the setup. */
  readonly agree: () => Promise<boolean>;
  readonly signal: AbortSignal;
}

export interface Installed {
  readonly folder: string;
  readonly manifest: SetupManifest;
  /** False where it was there already and still works. */
  readonly changed: boolean;
}

/** @throws SETUP_UNFIT, SETUP_DECLINED, DOWNLOAD_FAILED, NO_WHEEL, BAD_WHEEL, SETUP_FOLDER, NO_TENSORFLOW, BUILD_FAILED, PROOF_FAILED; nothing is left behind then */
export async function install(options: InstallOptions): Promise<Installed> {
  const { kind, source, note, signal } = options;
  const folder = setupFolder(kind);
  const there = readSetup(kind);
  if (there !== undefined && fits(there, source)) {
    return { folder, manifest: await proveAgain(options, there), changed: false };
  }
  const wheels = source.from === 'tensorflow' ? [] : WHEELS[kind];
  const largest = Math.max(0, ...wheels.map(({ bytes }) => bytes));
  const fetches = source.from === 'pip';
  // pip copies what it has fetched.
  const needs = source.from === 'tensorflow' ? 1e6 : KEPT_BYTES[kind] + (fetches ? 2 * largest : 0);
  removeLeftovers(kind);
  const tools = checkMachine({ kind, fetches, needs, withoutGpu: options.withoutGpu });
  note(plan(kind, source, folder));
  if (!(await options.agree())) {
    throw new IsogymError('SETUP_DECLINED', 'nothing was fetched or written', { hint: `isogym setup ${kind} --yes` });
  }
  const staging = `${folder}.partial-${process.pid}`;
  makeFolders(staging);
  try {
    const bytes = await unpackAll(options, staging);
    const inside = source.from !== 'tensorflow';
    const library = libraryIn(inside ? join(staging, 'tensorflow') : resolve(source.folder));
    note('building the addon');
    await buildAddon(tools, library, staging, inside, signal);
    if (inside) rmSync(library.include, { recursive: true });
    note('proving it');
    const proof = await proveSetup(proofKind(options), staging, signal);
    // `native` takes this library as well, where it has none of its own.
    if (proofKind(options) === 'cuda') await proveSetup('native', staging, signal);
    const manifest = manifestOf(options, tools, proof, bytes);
    writeFileSync(join(staging, 'setup.json'), recordOf(manifest));
    signal.throwIfAborted();
    rmSync(folder, { recursive: true, force: true });
    renameSync(staging, folder);
    return { folder, manifest, changed: true };
  } catch (cause) {
    throw isFull(cause)
      ? new IsogymError('SETUP_FOLDER', `${folder}: ${messageOf(cause)}`, { cause, hint: HOME_HINT })
      : cause;
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

/**
 * What is there, on the machine as it is now: a box that got its GPU later is told in the record.
 * @throws SETUP_UNFIT where the GPU is gone; PROOF_FAILED, with how to make it anew
 */
async function proveAgain(options: InstallOptions, there: SetupManifest): Promise<SetupManifest> {
  const { kind, signal } = options;
  const folder = setupFolder(kind);
  const proven = proofKind(options);
  if (proven === 'cuda') checkGpu();
  const { device, memoryMiB } = await proveSetup(proven, folder, signal).catch((cause) => {
    if (!(cause instanceof IsogymError)) throw cause;
    const hint = `isogym doctor shows what works here. To make it anew: isogym setup ${kind} --remove && isogym setup ${kind}`;
    throw new IsogymError(cause.code, cause.message, { cause, hint });
  });
  const now = { ...there, device, memoryMiB };
  if (proven !== kind || isDeepStrictEqual(now, there)) return there;
  const file = join(folder, 'setup.json');
  writeDurably(`${file}.new`, recordOf(now));
  renameSync(`${file}.new`, file);
  return now;
}

/** Whether the disk has filled up since it was looked at. */
function isFull(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException | undefined)?.code ?? '');
}

/** @returns whether there was anything to remove */
export function remove(kind: SetupKind): boolean {
  const folder = setupFolder(kind);
  const there = existsSync(folder);
  removeLeftovers(kind);
  if (there) rmSync(folder, { recursive: true });
  return there;
}

async function unpackAll({ kind, source, note, signal }: InstallOptions, staging: string): Promise<number> {
  if (source.from === 'tensorflow') return 0;
  let bytes = 0;
  for (const [i, wheel] of WHEELS[kind].entries()) {
    const name = `${wheel.project} ${wheel.version}, ${gigabytes(wheel.bytes)} (${i + 1}/${WHEELS[kind].length})`;
    note(`${source.from === 'pip' ? 'fetching' : 'checking'} ${name}`);
    const inbox = join(staging, 'inbox');
    const file =
      source.from === 'pip'
        ? await download(kind, wheel, inbox, signal)
        : await verified(kind, wheel, resolve(source.folder));
    note(`unpacking ${basename(file)}`);
    bytes += await unzip(file, staging, isNeeded, signal);
    rmSync(inbox, { recursive: true, force: true });
  }
  return bytes;
}

function plan(kind: SetupKind, source: Source, folder: string): string {
  const where = `into ${folder}, and nowhere else`;
  if (source.from === 'tensorflow') return `builds the addon against ${source.folder} ${where}`;
  const size = gigabytes(totalBytes(WHEELS[kind]));
  const what = `TensorFlow ${TENSORFLOW}${kind === 'cuda' ? ' with CUDA 12.9 and cuDNN 9' : ''}`;
  const how = source.from === 'pip' ? `fetches ${size} through pip` : `takes ${size} from ${source.folder}`;
  return `${what}: ${how}, keeps ${gigabytes(KEPT_BYTES[kind])} ${where}`;
}

/** Whether what is there is what would be made now; a TensorFlow of somebody's own stays until another source is named. */
function fits(there: SetupManifest, source: Source): boolean {
  if (!existsSync(setupFolder(there.kind))) return false;
  if (source.from === 'tensorflow') return there.from === resolve(source.folder);
  if (source.from === 'pip' && there.wheels.length === 0) return true;
  const hashes = (wheels: readonly { readonly sha256: string }[]) => wheels.map(({ sha256 }) => sha256).join();
  return hashes(there.wheels) === hashes(WHEELS[there.kind]);
}

function proofKind({ kind, withoutGpu }: InstallOptions): SetupKind {
  return withoutGpu ? 'native' : kind;
}

function recordOf(manifest: SetupManifest): string {
  return `${JSON.stringify(manifest, null, 2)}\n`;
}

function manifestOf({ kind, source }: InstallOptions, tools: Tools, proof: Proof, bytes: number): SetupManifest {
  return {
    format: SETUP_FORMAT,
    kind,
    tensorflow: proof.tensorflow,
    from: source.from === 'tensorflow' ? resolve(source.folder) : source.from,
    wheels:
      source.from === 'tensorflow'
        ? []
        : WHEELS[kind].map(({ project, version, sha256 }) => ({ project, version, sha256 })),
    addon: `${ADDON_PACKAGE} ${tools.addonVersion}`,
    compiler: tools.compilerVersion,
    device: proof.device,
    memoryMiB: proof.memoryMiB,
    bytes,
  };
}

/** What setups that were killed have left; one that still runs keeps its own. */
function removeLeftovers(kind: SetupKind): void {
  const folder = setupFolder(kind);
  if (!existsSync(dirname(folder))) return;
  for (const name of readdirSync(dirname(folder))) {
    const pid = Number(name.split('.partial-')[1] ?? Number.NaN);
    if (name.startsWith(`${kind}.partial-`) && !isRunning(pid)) {
      rmSync(join(dirname(folder), name), { recursive: true, force: true });
    }
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return pid !== process.pid;
  } catch {
    return false;
  }
}
