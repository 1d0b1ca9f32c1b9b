/** @module Reads a zip archive (PKWARE's APPNOTE, sections 4.3.7, 4.3.12, 4.3.16), which a wheel is; no more of it than wheels use: no encryption, no zip64. */
import { createReadStream, createWriteStream } from 'node:fs';
import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { dirname, join, normalize, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createInflateRaw } from 'node:zlib';
import { IsogymError } from '../records/errors.ts';

interface Entry {
  readonly path: string;
  readonly method: number;
  readonly packed: number;
  readonly bytes: number;
  /** Of the local header in the archive. */
  readonly offset: number;
  readonly mode: number;
}

const END = 0x06054b50;
const CENTRAL = 0x02014b50;
const LOCAL = 0x04034b50;
const STORED = 0;
const DEFLATED = 8;

/**
 * Writes the entries that `wanted` names below `folder`, and says the bytes written.
 * @throws BAD_WHEEL where it is no zip archive, or an entry comes out shorter than it says, or would lie outside `folder`.
 */
export async function unzip(
  file: string,
  folder: string,
  wanted: (path: string) => boolean,
  signal?: AbortSignal,
): Promise<number> {
  const archive = await open(file);
  try {
    let written = 0;
    for (const entry of await entriesOf(archive, file)) {
      if (entry.path.endsWith('/') || !wanted(entry.path)) continue;
      await extract(archive, entry, file, folder, signal);
      written += entry.bytes;
    }
    return written;
  } finally {
    await archive.close();
  }
}

async function entriesOf(archive: FileHandle, file: string): Promise<readonly Entry[]> {
  const { size } = await archive.stat();
  const tail = await read(archive, Math.max(0, size - 65_557), size);
  const end = tail.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]));
  if (end < 0 || tail.readUInt32LE(end) !== END) throw bad(file, 'no end of central directory');
  const count = tail.readUInt16LE(end + 10);
  const from = tail.readUInt32LE(end + 16);
  const directory = await read(archive, from, from + tail.readUInt32LE(end + 12));
  const entries: Entry[] = [];
  for (let at = 0, i = 0; i < count; i++) {
    if (at + 46 > directory.length || directory.readUInt32LE(at) !== CENTRAL) throw bad(file, 'a broken directory');
    const nameLength = directory.readUInt16LE(at + 28);
    entries.push({
      path: directory.toString('utf8', at + 46, at + 46 + nameLength),
      method: directory.readUInt16LE(at + 10),
      packed: directory.readUInt32LE(at + 20),
      bytes: directory.readUInt32LE(at + 24),
      offset: directory.readUInt32LE(at + 42),
      mode: (directory.readUInt32LE(at + 38) >>> 16) & 0o777,
    });
    at += 46 + nameLength + directory.readUInt16LE(at + 30) + directory.readUInt16LE(at + 32);
  }
  return entries;
}

async function extract(
  archive: FileHandle,
  entry: Entry,
  file: string,
  folder: string,
  signal?: AbortSignal,
): Promise<void> {
  const target = join(folder, normalize(entry.path));
  if (!target.startsWith(folder + sep)) throw bad(file, `an entry outside it: ${entry.path}`);
  if (entry.method !== STORED && entry.method !== DEFLATED) throw bad(file, `method ${entry.method} of ${entry.path}`);
  const header = await read(archive, entry.offset, entry.offset + 30);
  if (header.readUInt32LE(0) !== LOCAL) throw bad(file, `no header of ${entry.path}`);
  const start = entry.offset + 30 + header.readUInt16LE(26) + header.readUInt16LE(28);
  await mkdir(dirname(target), { recursive: true });
  const output = createWriteStream(target, { mode: entry.mode || 0o644 });
  const options = signal === undefined ? {} : { signal };
  if (entry.packed > 0) {
    const input = createReadStream(file, { start, end: start + entry.packed - 1 });
    if (entry.method === DEFLATED) await pipeline(input, createInflateRaw(), output, options);
    else await pipeline(input, output, options);
  } else {
    output.end();
  }
  if (output.bytesWritten !== entry.bytes) throw bad(file, `${output.bytesWritten} bytes of ${entry.path}`);
}

async function read(archive: FileHandle, from: number, to: number): Promise<Buffer> {
  const buffer = Buffer.alloc(to - from);
  await archive.read(buffer, 0, buffer.length, from);
  return buffer;
}

function bad(file: string, found: string): IsogymError {
  return new IsogymError('BAD_WHEEL', `${file}: expected a zip archive as wheels are, found ${found}`);
}
