/** @module The machine that isogym runs on, as `isogym doctor` names it. */
import { availableParallelism, cpus, freemem, totalmem } from 'node:os';
import { isogymVersion } from './version.ts';

export interface Machine {
  readonly isogym: string;
  readonly node: string;
  readonly v8: string;
  readonly platform: string;
  readonly cpu: string;
  /** Cores that this process may use. */
  readonly cores: number;
  readonly memoryGiB: number;
  readonly freeMemoryGiB: number;
}

/** What this process may use at most: of the machine, or of the container that it runs in. */
export function memoryBytes(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}

export function examine(): Machine {
  return {
    isogym: isogymVersion(),
    node: process.versions.node,
    v8: process.versions.v8,
    platform: `${process.platform}-${process.arch}`,
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryGiB: gibibytes(memoryBytes()),
    freeMemoryGiB: gibibytes(freemem()),
  };
}

function gibibytes(bytes: number): number {
  return Number((bytes / 2 ** 30).toFixed(1));
}
