import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { checkVersion, heapLimitHolds, isolatedVm } from '../../../src/env/sandbox/isolated-vm.ts';

it.each(['6.2.0', '6.2.1', '6.10.0', '7.0.1', '7.1.0', '8.0.0', '10.0.0'])('isolated-vm %s is taken', (version) => {
  expect(() => checkVersion(version)).not.toThrow();
});

it.each(['4.7.2', '5.0.4', '6.0.0', '6.1.2', '6.1.99', '7.0.0', '', 'latest'])(
  'isolated-vm %s is refused',
  (version) => {
    expect(() => checkVersion(version)).toThrow(
      expect.objectContaining({ code: 'ISOLATED_VM_UNSAFE', message: expect.stringContaining(`found ${version}`) }),
    );
  },
);

it('the installed one is taken, and is the same module each time', () => {
  expect(isolatedVm()).toBe(isolatedVm());
});

it('a heap is held to its limit under V8 12, which is Node 22, and not under V8 13, which is Node 24', () => {
  expect(heapLimitHolds('12.4.254.21-node.33')).toBe(true);
  expect(heapLimitHolds('13.6.233.10-node.28')).toBe(false);
});

it('an engine that gives isolates what cannot be taken away is refused, with what to do', () => {
  const module = new URL('../../../src/env/sandbox/isolated-vm.ts', import.meta.url).href;
  const script = `import { isolatedVm } from '${module}';
    try { isolatedVm(); } catch ({ code, message, hint }) { console.log(JSON.stringify({ code, message, hint })); }`;
  const flags = ['--no-node-snapshot', '--expose-gc', '--input-type=module'];
  const said = execFileSync(process.execPath, [...flags, '-e', script], { encoding: 'utf8' });
  expect(JSON.parse(said)).toEqual({
    code: 'ISOLATED_VM_UNSAFE',
    message: 'Expected isolates without globals that cannot be taken away, found gc.',
    hint: 'Run Node without --expose-gc and other flags that add globals.',
  });
});
