import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { ISOLATE_FLAGS } from '../../src/env/sandbox/isolated-vm.ts';

const BIN = new URL('../../bin/isogym.js', import.meta.url).pathname;
const FLAGS_TOLD =
  "data:text/javascript,process.on('exit', () => console.error('began with', process.execArgv.join(' ')))";
const NO_EXECVE = 'data:text/javascript,process.execve = undefined';

function isogym(imports: readonly string[], args: readonly string[]) {
  const flags = imports.flatMap((url) => ['--import', url]);
  return spawnSync(process.execPath, [...flags, BIN, ...args], { encoding: 'utf8' });
}

// Isolates need these flags, and a thread cannot be given them later.
test.each([
  ['in its own place', [FLAGS_TOLD]],
  ['below it, where a process cannot be replaced', [NO_EXECVE, FLAGS_TOLD]],
])('the program begins with the flags that isolates need, %s', (_, imports) => {
  const { status, stdout, stderr } = isogym(imports, ['--version']);
  expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  expect(stderr).toContain(`began with ${ISOLATE_FLAGS.join(' ')}`);
  expect(status).toBe(0);
});

test.each([[[]], [[NO_EXECVE]]])('the exit code is the program’s own (%j)', (imports) => {
  expect(isogym(imports, ['train', '--nope']).status).toBe(2);
});
