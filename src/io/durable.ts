/** @module Folders and files that are there, whole, once the call has returned. */
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** `mkdir -p`. Node's own goes round for ever where a file system refuses a new folder as /proc does. */
export function makeFolders(path: string): void {
  const parent = dirname(path);
  if (parent !== path && !existsSync(parent)) makeFolders(parent);
  try {
    mkdirSync(path);
  } catch (error) {
    if (!(existsSync(path) && statSync(path).isDirectory())) throw error;
  }
}

/** Returns once what a folder lists is on the disk: after a rename in it, that the new name is there and the old one is not. Windows has no such call and does without. */
export function syncFolder(path: string): void {
  if (process.platform === 'win32') return;
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Returns once the content is on the disk: a rename that follows never reveals an empty file. */
export function writeDurably(path: string, content: string | Uint8Array): void {
  const fd = openSync(path, 'w');
  try {
    writeFileSync(fd, content);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
