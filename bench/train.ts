/**
 * @module Every row of `bench/results/train.json`: each backend, mode and size of `isogym bench train` in a process of its own, so that
 * the memory is of that row alone. `node bench/train.ts [--backend native,wasm] [--size 0.4,6,30] [--decode 16,64,256] [--seconds 2] [--limit 400]`
 *
 * 0.4 M is timed at least three times and for `seconds`, 6 M seven times and 30 M three times, after one pass that is not measured; a row
 * says which (`passes`). One that takes longer than `limit` seconds is named under `notMeasured`.
 */
import { execFileSync } from 'node:child_process';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { BenchResult } from '../src/bench/train.ts';
import type { Machine } from '../src/io/machine.ts';

const { values } = parseArgs({
  options: {
    backend: { type: 'string', default: 'native,wasm' },
    size: { type: 'string', default: '0.4,6,30' },
    decode: { type: 'string', default: '16,64,256' },
    seconds: { type: 'string', default: '2' },
    limit: { type: 'string', default: '400' },
  },
});

interface Printed {
  readonly machine: Machine & { readonly device: string };
  readonly results: readonly BenchResult[];
}

const root = join(import.meta.dirname, '..');
const load = () => Number(loadavg()[0]?.toFixed(1));
const loadBefore = load();
const machines: Record<string, Printed['machine']> = {};
const results: BenchResult[] = [];
const notMeasured: object[] = [];
for (const backend of values.backend.split(',')) {
  for (const size of values.size.split(',')) {
    for (const mode of backend === 'native' || backend === 'cuda' ? ['eager', 'replay'] : ['eager']) {
      const effort =
        size === '0.4' ? ['--seconds', values.seconds] : ['--seconds', '0.001', '--passes', size === '6' ? '7' : '3'];
      const begin = performance.now();
      try {
        const options = ['--json', '--backend', backend, '--mode', mode, '--size', size, '--decode', values.decode];
        const printed = execFileSync(
          process.execPath,
          [join(root, 'bin', 'isogym.js'), 'bench', 'train', ...options, ...effort],
          { encoding: 'utf8', cwd: root, stdio: ['ignore', 'pipe', 'ignore'], timeout: 1000 * Number(values.limit) },
        );
        const { machine, results: rows } = JSON.parse(printed) as Printed;
        machines[backend] = machine;
        results.push(...rows);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ETIMEDOUT') throw error;
        notMeasured.push({ backend, mode, size, reason: `not done after ${values.limit} s` });
      }
      console.error(`${backend} ${mode} ${size} M: ${((performance.now() - begin) / 1000).toFixed(0)} s`);
    }
  }
}
const { device: _, ...machine } = Object.values(machines)[0] ?? {};
const devices = Object.fromEntries(Object.entries(machines).map(([backend, { device }]) => [backend, device]));
const command = `node bench/train.ts ${process.argv.slice(2).join(' ')}`.trim();
const about = { ...machine, devices, load: { before: loadBefore, after: load() }, command };
console.log(JSON.stringify({ machine: about, results, notMeasured }, null, 2));
