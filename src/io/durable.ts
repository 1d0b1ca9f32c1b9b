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
