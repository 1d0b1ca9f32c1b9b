import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32, deflateRawSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { unzip } from '../../src/setup/zip.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'isogym-zip-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

interface Part {
  readonly path: string;
  readonly content: Buffer;
  readonly stored?: boolean;
  readonly mode?: number;
  /** What the directory says the content has. */
  readonly bytes?: number;
}

/** An archive as `zip` writes it: local headers, then the directory, then its end. */
function archive(...parts: readonly Part[]): string {
  const bodies: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { path, content, stored = false, mode = 0o644, bytes = content.length } of parts) {
    const packed = stored ? content : deflateRawSync(content);
    const name = Buffer.from(path);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(stored ? 0 : 8, 4);
    common.writeUInt32LE(crc32(content), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(bytes, 18);
    common.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, name, packed]);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(((0o100000 | mode) << 16) >>> 0, 6);
    rest.writeUInt32LE(offset, 10);
    directory.push(Buffer.concat([Buffer.from('PK\x01\x02\x14\x03'), common, rest, name]));
    bodies.push(local);
    offset += local.length;
  }
  const listing = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(parts.length, 8);
  end.writeUInt16LE(parts.length, 10);
  end.writeUInt32LE(listing.length, 12);
  end.writeUInt32LE(offset, 16);
  const file = join(folder, 'a.whl');
  writeFileSync(file, Buffer.concat([...bodies, listing, end]));
  return file;
}

test('writes what is wanted, packed or stored, with its mode, and nothing else', async () => {
  const long = Buffer.alloc(300_000, 'wheel');
  const file = archive(
    { path: 'a/deep/long.bin', content: long },
    { path: 'a/tool', content: Buffer.from('#!'), stored: true, mode: 0o755 },
    { path: 'a/empty', content: Buffer.alloc(0), stored: true },
    { path: 'b/other', content: Buffer.from('no') },
  );
  const out = join(folder, 'out');
  expect(await unzip(file, out, (path) => path.startsWith('a/'))).toBe(long.length + 2);
  expect(readFileSync(join(out, 'a/deep/long.bin'))).toEqual(long);
  expect(statSync(join(out, 'a/tool')).mode & 0o777).toBe(0o755);
  expect(readFileSync(join(out, 'a/empty')).length).toBe(0);
  expect(readdirSync(out)).toEqual(['a']);
});

test('refuses an entry that would lie outside the folder', async () => {
  const file = archive({ path: '../evil', content: Buffer.from('x') });
  await expect(unzip(file, join(folder, 'out'), () => true)).rejects.toMatchObject({ code: 'BAD_WHEEL' });
  expect(existsSync(join(folder, 'evil'))).toBe(false);
});

test('refuses an entry that comes out shorter than the directory says', async () => {
  const file = archive({ path: 'a', content: Buffer.from('short'), bytes: 6 });
  await expect(unzip(file, join(folder, 'out'), () => true)).rejects.toMatchObject({ code: 'BAD_WHEEL' });
});

test('refuses what is no archive', async () => {
  const file = join(folder, 'a.whl');
  writeFileSync(file, Buffer.alloc(500));
  await expect(unzip(file, folder, () => true)).rejects.toMatchObject({ code: 'BAD_WHEEL' });
});
