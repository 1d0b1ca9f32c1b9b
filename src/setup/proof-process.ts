/** @module Runs in a process of its own: brings up the backend that was just built, proves it (`prove`), and prints what it ran on as one JSON object. */
import { spawnSync } from 'node:child_process';
import { selectBackend } from '../policy/backends/select.ts';
import type { SetupKind } from './wheels.ts';

export interface Proof {
  readonly device: string;
  readonly memoryMiB: number | null;
  /** E.g. `2.21.0`. */
  readonly tensorflow: string;
}

const kind = process.argv[2] as SetupKind;
try {
  const { device, tf } = await selectBackend(kind);
  const { binding } = tf.backend() as unknown as { readonly binding: { readonly TF_Version: string } };
  const proof: Proof = { device, memoryMiB: kind === 'cuda' ? gpuMemory() : null, tensorflow: binding.TF_Version };
  process.stdout.write(JSON.stringify(proof));
} catch (error) {
  process.stderr.write(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}

/** As the driver's own tool tells; null where it is not there. */
function gpuMemory(): number | null {
  const asked = spawnSync('nvidia-smi', ['--query-gpu=memory.total', '--format=csv,noheader,nounits'], {
    encoding: 'utf8',
  });
  const first = Number.parseInt(asked.stdout?.split('\n')[0] ?? '', 10);
  return Number.isNaN(first) ? null : first;
}
