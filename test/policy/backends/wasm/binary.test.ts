import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { BINARY_FILE, binarySource, compileWasm } from '../../../../scripts/build-wasm.ts';

test('the module that is loaded is what its sources compile to, byte for byte', () => {
  expect(readFileSync(BINARY_FILE, 'utf8')).toBe(binarySource(compileWasm()));
}, 300_000);
