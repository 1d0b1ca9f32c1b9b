/** @module `isogym doctor`: what this machine has, and which parts of isogym work on it. */
import { createRequire } from 'node:module';
import { Command } from 'commander';
import { messageOf } from '../records/errors.ts';
import { asTyped } from './invocation.ts';
import { printJson } from './output.ts';
import { JSON_OPTION } from './session.ts';

export function doctorCommand(): Command {
  return new Command('doctor')
    .description('Say what this machine has, and which tensor backends work on it.')
    .option(...JSON_OPTION)
    .action(doctor);
}

async function doctor(flags: { readonly json?: boolean }): Promise<void> {
  const { examine } = await import('../io/machine.ts');
  const { probeBackends } = await import('../policy/backends/select.ts');
  const { table } = await import('../io/table.ts');
  const machine = { ...examine(), isolatedVm: await isolates() };
  const backends = await probeBackends();
  const { readSetup, setupFolder } = await import('../policy/backends/addon.ts');
  const setups = (['native', 'cuda'] as const).flatMap((kind) => {
    const manifest = readSetup(kind);
    return manifest === undefined ? [] : [{ folder: setupFolder(kind), ...manifest }];
  });
  const chosen = backends.find((b) => b.works)?.backend ?? null;
  if (flags.json === true) {
    printJson({ ...machine, backends, auto: chosen, setups });
    return;
  }
  const facts = Object.entries(machine).map(([name, value]) => [name, String(value)]);
  const rows = backends.map((b) => [b.backend, b.works ? 'works' : 'no', b.device ?? asTyped(b.reason ?? '')]);
  process.stdout.write(`${table(['', ''], facts).trimStart()}\n\n`);
  process.stdout.write(`${table(['backend', '', 'device, or why not'], rows)}\n\n`);
  for (const { kind, tensorflow, device, from, folder } of setups) {
    process.stdout.write(`set up: ${kind}, TensorFlow ${tensorflow} (${from}) in ${folder}, proved on ${device}\n`);
  }
  process.stdout.write(`backend: auto takes ${chosen ?? 'none: nothing works here'}\n`);
}

/** The version of isolated-vm, or why it cannot be used. */
async function isolates(): Promise<string> {
  const { isolatedVm } = await import('../env/sandbox/isolated-vm.ts');
  try {
    isolatedVm();
    return String(createRequire(import.meta.url)('isolated-vm/package.json').version);
  } catch (error) {
    return messageOf(error);
  }
}
