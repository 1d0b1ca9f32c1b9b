/**
 * @module What a GPU should give on paper, term by term, at the sizes of `isogym bench train`, and beside it what was measured.
 * `node bench/gpu-model.ts [BENCH_JSON]`: prints a table; BENCH_JSON is what `isogym bench train --json` printed.
 */
import { readFileSync } from 'node:fs';
import { BENCH_MODELS, type BenchResult } from '../src/bench/train.ts';
import { table } from '../src/io/table.ts';
import type { TransformerConfig } from '../src/policy/transformer/config.ts';

/** NVIDIA's data sheet of the H200 SXM, and what is assumed of TensorFlow. */
const GPU = {
  /** HBM3e [bytes/s]. */
  memory: 4.8e12,
  /** float32 outside the tensor cores [FLOP/s]; TF32, which TensorFlow takes for products, has 7 times as much. */
  arithmetic: 67e12,
  /** Of both, what large kernels reach. */
  share: 0.6,
  /** One kernel at least, its launch by TensorFlow's executor included [s]. */
  launch: 5e-6,
  /** A call of the session from TypeScript, copies in and out included [s]. */
  roundTrip: 150e-6,
};
const FLOAT = 4;
/** Kernels of one layer and of what is around the layers, counted in the recorded graphs without reshapes, constants and reads. */
const DECODE_KERNELS = { layer: 33, rest: 30 };
const TRAIN_KERNELS = { layer: 110, rest: 80 };
/** Adam's and the norm's, for each weight. */
const UPDATE_KERNELS = 4;
/** Columns that a slot has after a prompt of 8 and 32 tokens. */
const COLUMNS = 64;
const [ROWS, LENGTH] = [16, 128];

interface Terms {
  readonly memory: number;
  readonly arithmetic: number;
  readonly launches: number;
  readonly roundTrip: number;
}

/** Parameters that take part in products: all but the norms. */
function parametersOf({ vocabulary, layers, width, heads, kvHeads, headWidth, hidden }: TransformerConfig): number {
  const attention = width * headWidth * (2 * heads + 2 * kvHeads);
  return vocabulary * width + layers * (attention + 3 * width * hidden);
}

/** One token of each row: weights and caches are read once. */
function decode(config: TransformerConfig, rows: number): Terms {
  const { layers, heads, kvHeads, headWidth, vocabulary } = config;
  const parameters = parametersOf(config);
  const caches = 2 * layers * rows * kvHeads * COLUMNS * headWidth;
  const flops = 2 * parameters * rows + 4 * layers * rows * heads * headWidth * COLUMNS;
  return {
    memory: (FLOAT * (parameters + caches + 8 * rows * vocabulary)) / (GPU.share * GPU.memory),
    arithmetic: flops / (GPU.share * GPU.arithmetic),
    launches: GPU.launch * (DECODE_KERNELS.rest + layers * DECODE_KERNELS.layer),
    roundTrip: GPU.roundTrip,
  };
}

/** Forward, backward (twice the forward's arithmetic), the norm and Adam; two calls. */
function train(config: TransformerConfig): Terms {
  const { layers, width, heads, kvHeads, headWidth, hidden, vocabulary } = config;
  const parameters = parametersOf(config);
  const tokens = ROWS * LENGTH;
  const flops = 6 * parameters * tokens + 12 * layers * tokens * LENGTH * heads * headWidth;
  // Each operation of a layer writes its result and reads it again, forward and backward.
  const perToken = layers * (24 * width + 6 * (heads + 2 * kvHeads) * headWidth + 12 * hidden + 8 * heads * LENGTH);
  const activations = 3 * tokens * (perToken + 8 * vocabulary);
  // Adam reads and writes weight and moments and reads the gradient; the gradient is written and its norm taken.
  const optimizer = 9 * parameters;
  return {
    memory: (FLOAT * (activations + optimizer + 3 * parameters)) / (GPU.share * GPU.memory),
    arithmetic: flops / (GPU.share * GPU.arithmetic),
    launches: GPU.launch * (TRAIN_KERNELS.rest + layers * (TRAIN_KERNELS.layer + 9 * UPDATE_KERNELS)),
    roundTrip: 2 * GPU.roundTrip,
  };
}

const [file] = process.argv.slice(2);
const measured =
  file === undefined
    ? []
    : (JSON.parse(readFileSync(file, 'utf8')) as { readonly results: readonly BenchResult[] }).results;

/** Measured [ms]; undefined where it was not. */
function replayed(size: string, of: (result: BenchResult) => number | undefined): number | undefined {
  const found = measured.find((r) => r.mode === 'replay' && Math.abs(r.parameters / 1e6 / Number(size) - 1) < 0.2);
  return found && of(found);
}

function row(what: string, tokens: number, terms: Terms, found: number | undefined): string[] {
  const { memory, arithmetic, launches, roundTrip } = terms;
  const ms = (seconds: number) => (1e3 * seconds).toFixed(2);
  // What is computed overlaps with what is loaded, and both with the launches of what follows: the largest of the three counts.
  const total = Math.max(memory, arithmetic, launches) + roundTrip;
  const perSecond = (seconds: number) => Math.round(tokens / seconds).toLocaleString('en');
  return [
    ...[what, ms(memory), ms(arithmetic), ms(launches), ms(roundTrip), ms(total), perSecond(total)],
    ...(found === undefined ? ['-', '-'] : [found.toFixed(2), perSecond(found / 1e3)]),
  ];
}

const rows = (['0.4', '6', '30'] as const).flatMap((size) => {
  const config = BENCH_MODELS[size];
  return [
    ...[16, 64, 256, 4096].map((count) =>
      row(
        `${size} M, token at ${count} rows`,
        count,
        decode(config, count),
        replayed(size, (r) => r.decode.find((d) => d.rows === count)?.msPerToken),
      ),
    ),
    row(
      `${size} M, step of ${ROWS} × ${LENGTH}`,
      ROWS * LENGTH,
      train(config),
      replayed(size, (r) => r.trainStepMs),
    ),
  ];
});
console.log(
  table(
    ['ms', 'memory', 'arithmetic', 'launches', 'round trips', 'on paper', 'tokens/s', 'measured', 'tokens/s'],
    rows,
  ),
);
