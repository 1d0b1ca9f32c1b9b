/**
 * @module A whole GRPO step of isogym against one of TRL's GRPOTrainer, on the same model, prompts, rows and two threads, in turns, so
 * that a machine which is busy is busy for both. Of TRL each round has the better step of threads that sleep and threads that spin.
 * `node bench/against-trl.ts --python PYTHON [--rounds 3] [--steps 14] [--openmp PASSIVE]`
 *
 * PYTHON is a Python that has trl and torch. `--install FOLDER` makes one there, by venv and pip, and asks for nothing else.
 */
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { examine } from '../src/io/machine.ts';
import { median } from '../src/train/statistics.ts';
import { openMp, printedBy, printedByPeer, pythonWith } from './peer.ts';

const { values } = parseArgs({
  options: {
    python: { type: 'string' },
    install: { type: 'string' },
    rounds: { type: 'string', default: '3' },
    steps: { type: 'string', default: '14' },
    backend: { type: 'string', default: 'native' },
    openmp: { type: 'string' },
  },
});

interface Step {
  readonly stepMs: number;
  readonly generateMs: number;
  readonly updateMs: number;
}

const PARTS = ['stepMs', 'generateMs', 'updateMs'] as const;
const openmp = openMp(values.openmp);
const loadBefore = loadavg()[0];
const python = pythonWith(['torch', 'trl'], values);
const rounds: { trl: Step & Record<'trl' | 'torch' | 'transformers', string>; isogym: Step }[] = [];
for (let round = 0; round < Number(values.rounds); round++) {
  const args = [join('bench', 'trl_grpo.py'), values.steps];
  const [trl] = printedByPeer<(typeof rounds)[number]['trl']>(python, args, openmp).toSorted(
    (a, b) => a.stepMs - b.stepMs,
  );
  if (trl === undefined) throw new Error('expected a result of TRL, found none');
  const ours = [join('bench', 'grpo-step.ts'), '--steps', values.steps, '--backend', values.backend];
  const isogym = printedBy<Step>(process.execPath, ours);
  rounds.push({ trl, isogym });
  console.error(`round ${round + 1}: trl ${trl.stepMs.toFixed(0)} ms a step, isogym ${isogym.stepMs.toFixed(0)} ms`);
}
const of = (pick: (round: (typeof rounds)[number]) => number): number => median(rounds.map(pick));
const results = PARTS.map((what) => ({
  what,
  trlMs: of(({ trl }) => trl[what]),
  isogymMs: of(({ isogym }) => isogym[what]),
  ratio: of(({ trl, isogym }) => isogym[what] / trl[what]),
}));
for (const { what, trlMs, isogymMs, ratio } of results) {
  console.error(`${what}: trl ${trlMs.toFixed(0)}, isogym ${isogymMs.toFixed(0)}; ratio ${ratio.toFixed(2)}`);
}
const [first] = rounds;
const versions = first && { trl: first.trl.trl, torch: first.trl.torch, transformers: first.trl.transformers };
console.log(
  JSON.stringify({
    machine: examine(),
    load: { before: loadBefore, after: loadavg()[0] },
    ...versions,
    rounds,
    results,
  }),
);
