/**
 * @module isogym's training step and decoding against PyTorch's, on the same Llama-family module, batch and two threads, in turns, so
 * that a machine which is busy is busy for both. Of PyTorch each figure is the better one of threads that sleep and threads that spin.
 * `node bench/against-pytorch.ts --python PYTHON [--size 0.4,6] [--rounds 3] [--seconds 2] [--openmp PASSIVE]`
 *
 * PYTHON is a Python that has torch. `--install FOLDER` makes one there, by venv and pip, and asks for nothing else.
 */
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { BENCH_MODELS } from '../src/bench/train.ts';
import { examine } from '../src/io/machine.ts';
import { median } from '../src/train/statistics.ts';
import { openMp, printedBy, printedByPeer, pythonWith } from './peer.ts';

const { values } = parseArgs({
  options: {
    python: { type: 'string' },
    install: { type: 'string' },
    size: { type: 'string', default: '0.4' },
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '2' },
    rows: { type: 'string', default: '16' },
    length: { type: 'string', default: '128' },
    decode: { type: 'string', default: '16,64,256' },
    backend: { type: 'string', default: 'native' },
    openmp: { type: 'string' },
  },
});

interface Figures {
  readonly parameters: number;
  readonly trainStepMs: number;
  readonly decode: readonly { readonly rows: number; readonly msPerToken: number }[];
}

/** All that is measured, by name [ms]. */
function named({ trainStepMs, decode }: Figures): Map<string, number> {
  return new Map([
    ['training step', trainStepMs],
    ...decode.map(({ rows, msPerToken }) => [`token at ${rows} rows`, msPerToken] as const),
  ]);
}

const interpreter = pythonWith(['torch', 'numpy'], values);
const sizes = values.size.split(',') as (keyof typeof BENCH_MODELS)[];
const openmp = openMp(values.openmp);
const loadBefore = loadavg()[0];
const results: object[] = [];
let torch = '';
for (const size of sizes) {
  const rounds = new Map<string, { torch: number[]; eager: number[]; replay: number[] }>();
  for (let round = 0; round < Number(values.rounds); round++) {
    const args = [join('bench', 'pytorch.py'), JSON.stringify(BENCH_MODELS[size])];
    const shape = [values.rows, values.length, values.decode, values.seconds];
    const theirs = printedByPeer<Figures & { readonly torch: string }>(interpreter, [...args, ...shape], openmp);
    torch = theirs[0]?.torch ?? torch;
    const ours = printedBy<{ readonly results: readonly (Figures & { readonly mode: 'eager' | 'replay' })[] }>(
      process.execPath,
      [
        ...[join('bin', 'isogym.js'), 'bench', 'train', '--json', '--backend', values.backend, '--size', size],
        ...['--rows', values.rows, '--length', values.length, '--decode', values.decode, '--seconds', values.seconds],
      ],
    );
    for (const what of named(theirs[0] as Figures).keys()) {
      const row = rounds.get(what) ?? { torch: [], eager: [], replay: [] };
      rounds.set(what, row);
      row.torch.push(Math.min(...theirs.map((figures) => named(figures).get(what) ?? Number.NaN)));
      for (const result of ours.results) row[result.mode].push(named(result).get(what) ?? Number.NaN);
    }
  }
  for (const [what, { torch: theirs, eager, replay }] of rounds) {
    const ratio = (mine: readonly number[]) => median(mine.map((ms, i) => ms / (theirs[i] ?? Number.NaN)));
    const figures = {
      size,
      what,
      torchMs: median(theirs),
      eagerMs: median(eager),
      replayMs: median(replay),
      eagerRatio: ratio(eager),
      replayRatio: ratio(replay),
      replayOverEager: median(eager.map((ms, i) => ms / (replay[i] ?? Number.NaN))),
    };
    results.push(figures);
    console.error(
      `${size} M, ${what}: torch ${figures.torchMs.toFixed(2)} ms, eager ${figures.eagerMs.toFixed(2)}, replay ${figures.replayMs.toFixed(2)}; replay / torch ${figures.replayRatio.toFixed(2)}, eager / replay ${figures.replayOverEager.toFixed(2)}`,
    );
  }
  console.error(`(torch ${torch}, ${values.rounds} rounds, medians; ratios are medians of the rounds')`);
}
const load = { before: loadBefore, after: loadavg()[0] };
const command = `node bench/against-pytorch.ts ${process.argv.slice(2).join(' ')}`.replace(
  /--(python|install) \S+ ?/,
  '',
);
console.log(JSON.stringify({ machine: { ...examine(), torch, load, command }, results }));
