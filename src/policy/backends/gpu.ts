/** @module The NVIDIA driver and its GPUs, as the kernel tells of them: asked before anything of CUDA is loaded. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const DRIVER = '/proc/driver/nvidia';

export interface NvidiaDriver {
  /** E.g. `570.124.06`. */
  readonly version: string;
  /** Models, e.g. `NVIDIA H200`; empty where the driver has no GPU. */
  readonly gpus: readonly string[];
}

/** Undefined where the kernel has no NVIDIA driver. `root` is where the driver tells of itself. */
export function nvidiaDriver(root: string = DRIVER): NvidiaDriver | undefined {
  const version = join(root, 'version');
  if (!existsSync(version)) return undefined;
  const found = /\b(\d{3,}\.\d+(?:\.\d+)?)\b/.exec(readFileSync(version, 'utf8'))?.[1];
  const gpus = join(root, 'gpus');
  const models = existsSync(gpus) ? readdirSync(gpus).map((gpu) => modelOf(join(gpus, gpu, 'information'))) : [];
  return { version: found ?? 'unknown', gpus: models };
}

function modelOf(file: string): string {
  const model = existsSync(file) ? /^Model:\s*(.+)$/m.exec(readFileSync(file, 'utf8'))?.[1] : undefined;
  return model?.trim() ?? 'NVIDIA GPU';
}
