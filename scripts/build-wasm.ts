/**
 * @module Compiles `assembly/` to the module that the wasm backend loads, and writes it as base64 into
 * `src/policy/backends/wasm/binary.ts`. `node scripts/build-wasm.ts`; the compiler is an npm package and its output a function of
 * the sources and its version.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
export const BINARY_FILE = join(ROOT, 'src', 'policy', 'backends', 'wasm', 'binary.ts');

/** Warning 112 is about v128 in exports of inner files, which the module does not export. */
const OPTIONS =
  '--runtime stub --importMemory --noExportMemory --noAssert --enable simd -O3 --disableWarning 112'.split(' ');
/** In a WebAssembly module, and it has none: data would be written over what tfjs keeps at that address. */
const DATA_SECTION = 11;

/** The module's bytes. @throws where it has data of its own. */
export function compileWasm(): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'isogym-wasm-'));
  try {
    const file = join(folder, 'module.wasm');
    const compiler = join(ROOT, 'node_modules', 'assemblyscript', 'bin', 'asc.js');
    execFileSync(process.execPath, [compiler, 'assembly/index.ts', '--outFile', file, ...OPTIONS], {
      cwd: ROOT,
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    const bytes = readFileSync(file);
    if (sectionsOf(bytes).includes(DATA_SECTION)) {
      throw new Error('assembly: expected no data section, found one: make its constants part of the code');
    }
    return bytes;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Ids of a module's sections, in order. */
function sectionsOf(bytes: Uint8Array): number[] {
  const ids: number[] = [];
  for (let at = 8; at < bytes.length; ) {
    ids.push(bytes[at++] as number);
    let size = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++] as number;
      size += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) break;
    }
    at += size;
  }
  return ids;
}

/** The text of `binary.ts`. */
export function binarySource(bytes: Buffer): string {
  return `/** @module The module of \`assembly/\`, as \`npm run build:wasm\` wrote it: not to be edited. */\n\n/** WebAssembly, base64. */\nexport const BINARY =\n  '${bytes.toString('base64')}';\n`;
}

if (import.meta.main) {
  const bytes = compileWasm();
  writeFileSync(BINARY_FILE, binarySource(bytes));
  console.log(`${BINARY_FILE}: ${bytes.length} bytes`);
}
