/** @module The checkpoints of a run on disk: a folder for each, made whole or not at all, the latest few kept. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { syncFolder, writeDurably } from './durable.ts';

export interface Checkpoint {
  /** Iterations that were finished when it was made: the next one has this number. */
  readonly iteration: number;
  readonly path: string;
  /** The content of one of its files; null where there is none of that name. */
  readonly read: (file: string) => Buffer | null;
}

/**
 * Writes a checkpoint, whole or not at all; from then on it stands for its iteration, and the latest `keep` iterations are kept.
 * A kill at any moment leaves the one before or the new one.
 * @param folder that of all the checkpoints of a run; it exists
 */
export function saveCheckpoint(
  folder: string,
  iteration: number,
  files: Readonly<Record<string, string | Uint8Array>>,
  keep: number,
): Checkpoint {
  const earlier = checkpointsIn(folder).filter((checkpoint) => checkpoint.iteration === iteration);
  const number = String(iteration).padStart(6, '0');
  const path = join(folder, earlier.length === 0 ? number : `${number}-${1 + versionOf(earlier.at(-1)?.path ?? '')}`);
  for (const torn of readdirSync(folder).filter((name) => name.endsWith('.tmp'))) {
    rmSync(join(folder, torn), { recursive: true });
  }
  const draft = `${path}.tmp`;
  mkdirSync(draft);
  for (const [name, content] of Object.entries(files)) writeDurably(join(draft, name), content);
  syncFolder(draft);
  renameSync(draft, path);
  // Before an older one goes: a machine that loses its power now keeps one of them.
  syncFolder(folder);
  for (const old of earlier) rmSync(old.path, { recursive: true });
  for (const old of checkpointsIn(folder).slice(0, -keep)) rmSync(old.path, { recursive: true });
  return checkpointAt(iteration, path);
}

/** Oldest first; none where there is no such folder. */
export function checkpointsIn(folder: string): readonly Checkpoint[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && /^\d+(-\d+)?$/.test(entry.name))
    .map(({ name }) => checkpointAt(Number.parseInt(name, 10), join(folder, name)))
    .sort((a, b) => a.iteration - b.iteration || versionOf(a.path) - versionOf(b.path));
}

/** A checkpoint that was written again for the same iteration carries a number: `000040-2`. */
function versionOf(path: string): number {
  return Number(basename(path).split('-')[1] ?? 1);
}

function checkpointAt(iteration: number, path: string): Checkpoint {
  const read = (file: string) => (existsSync(join(path, file)) ? readFileSync(join(path, file)) : null);
  return { iteration, path, read };
}
