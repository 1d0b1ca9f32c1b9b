/**
 * @module Where the time of a training step and of a decode tick goes on wasm, kernel by kernel: the stock backend against ours,
 * in alternation, in one process. `npx node bench/kernels.ts [--rounds 6]`.
 *
 * The stock backend has no UnsortedSegmentSum and could not train at all: ours stands in for it on both sides.
 */
import { parseArgs } from 'node:util';
import * as tf from '@tensorflow/tfjs';
import '@tensorflow/tfjs-backend-wasm';
import { selectBackend } from '../src/policy/backends/select.ts';
import type { TransformerConfig } from '../src/policy/transformer/config.ts';
import { DecodeBatch, Decoder } from '../src/policy/transformer/decoder.ts';
import { transformer } from '../src/policy/transformer/model.ts';
import { generator } from '../src/records/random.ts';
import { type Batch, FORBIDDEN } from '../src/train/batch.ts';
import { disposeState, initialState, type Objective, trainStep } from '../src/train/step.ts';

/** Toy size: that of configs/toy-lookup.yaml. */
const CONFIG: TransformerConfig = {
  vocabulary: 490,
  layers: 2,
  width: 64,
  heads: 4,
  kvHeads: 2,
  headWidth: 16,
  hidden: 172,
  ropeBase: 10000,
  epsilon: 1e-5,
  tied: true,
};
const EPISODES = 64;
const TOKENS = 24;
const SCORED = 700;
const STATES = 40;
const DECODE_ROWS = 128;
const DECODE_COLUMNS = 20;

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '6' } } });
const rounds = Number(values.rounds);

const stock = new Map(tf.getKernelsForBackend('wasm').map((kernel) => [kernel.kernelName, kernel]));
const { device } = await selectBackend('wasm');
const ours = new Map(tf.getKernelsForBackend('wasm').map((kernel) => [kernel.kernelName, kernel]));

type Times = Map<string, { calls: number; ms: number }>;

let inside = false;

/** Registers a side's kernels, each timed into `times`. */
function use(kernels: ReadonlyMap<string, tf.KernelConfig>, times: Times | undefined): void {
  for (const [name, own] of ours) {
    const { kernelFunc } = kernels.get(name) ?? own;
    const timed: tf.KernelFunc = (args) => {
      // A kernel that calls others is charged for them.
      if (inside || times === undefined) return kernelFunc(args);
      inside = true;
      const start = performance.now();
      const result = kernelFunc(args);
      const entry = times.get(name) ?? { calls: 0, ms: 0 };
      entry.calls++;
      entry.ms += performance.now() - start;
      times.set(name, entry);
      inside = false;
      return result;
    };
    tf.unregisterKernel(name, 'wasm');
    tf.registerKernel({ kernelName: name, backendName: 'wasm', kernelFunc: times === undefined ? kernelFunc : timed });
  }
}

interface Side {
  readonly kernels: ReadonlyMap<string, tf.KernelConfig>;
  /** Without the timers [ms]; this and each kernel's time is that of its quickest round. */
  total: number;
  readonly times: Times;
}

async function compare(title: string, work: () => Promise<void>): Promise<void> {
  const side = (kernels: ReadonlyMap<string, tf.KernelConfig>): Side => ({
    kernels,
    total: Number.POSITIVE_INFINITY,
    times: new Map(),
  });
  const sides = [side(stock), side(ours)] as const;
  for (let round = -1; round < rounds; round++) {
    for (const s of sides) {
      use(s.kernels, undefined);
      const start = performance.now();
      await work();
      const total = performance.now() - start;
      const times: Times = new Map();
      use(s.kernels, times);
      await work();
      // The first round warms up.
      if (round < 0) continue;
      s.total = Math.min(s.total, total);
      for (const [name, entry] of times) {
        if (entry.ms < (s.times.get(name)?.ms ?? Number.POSITIVE_INFINITY)) s.times.set(name, entry);
      }
    }
  }
  use(ours, undefined);
  const [before, after] = sides;
  console.log(`\n${title}`);
  line('kernel', 'calls', 'stock ms', 'ours ms', 'ratio');
  const names = [...before.times.keys()].sort((a, b) => ms(before, b) - ms(before, a));
  for (const name of names) row(name, before.times.get(name)?.calls ?? 0, ms(before, name), ms(after, name));
  const all = (side: Side) => [...side.times.values()].reduce((sum, { ms }) => sum + ms, 0);
  row(
    'all kernels',
    [...after.times.values()].reduce((n, { calls }) => n + calls, 0),
    all(before),
    all(after),
  );
  row('whole', 1, before.total, after.total);
}

function ms(side: Side, name: string): number {
  return side.times.get(name)?.ms ?? 0;
}

function row(name: string, calls: number, before: number, after: number): void {
  line(name, String(calls), before.toFixed(2), after.toFixed(2), (before / after).toFixed(2));
}

function line(name: string, ...columns: readonly string[]): void {
  console.log(name.padEnd(20) + columns.map((column) => column.padStart(10)).join(''));
}

const random = generator('bench/kernels');
const integers = (size: number, below: number) => Int32Array.from({ length: size }, () => Math.floor(random() * below));
const model = transformer(CONFIG);
const weights = Object.fromEntries(
  Object.entries(model.init(random)).map(([name, { shape, data }]) => [name, tf.tensor(data, [...shape])]),
);
const targets = integers(SCORED, CONFIG.vocabulary);
const maskRows = Float32Array.from({ length: STATES * CONFIG.vocabulary }, () => (random() < 0.1 ? 0 : FORBIDDEN));
const maskIndex = integers(SCORED, STATES);
for (const [n, state] of maskIndex.entries()) maskRows[state * CONFIG.vocabulary + (targets[n] ?? 0)] = 0;
const batch: Batch = {
  rows: Array.from({ length: EPISODES }, () => ({ episode: '', segment: 0, ids: [], sampled: [] })),
  width: TOKENS,
  ids: integers(EPISODES * TOKENS, CONFIG.vocabulary),
  scored: integers(SCORED, EPISODES * TOKENS),
  targets,
  behaviour: new Float32Array(SCORED).fill(-3),
  advantages: Float32Array.from({ length: SCORED }, () => random() - 0.5),
  maskIndex,
  masks: { rows: maskRows, states: STATES, vocabulary: CONFIG.vocabulary },
  denominator: SCORED,
};
const objective: Objective = {
  kind: 'policy',
  temperature: 1,
  clipLow: 0.2,
  clipHigh: 0.2,
  entropyCoefficient: 0.01,
  klCoefficient: 0,
};
let state = initialState(weights);
const optimizer = { learningRate: 1e-3, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weightDecay: 0.01 };

async function step(): Promise<void> {
  const next = trainStep({ model, state, batches: [batch], objective, optimizer, maxNorm: 1 });
  disposeState(state);
  state = next.state;
  await next.packed.data();
  next.packed.dispose();
}

const decoder = new Decoder(CONFIG, weights);
const tokens = Array.from({ length: DECODE_ROWS }, () => [...integers(DECODE_COLUMNS, CONFIG.vocabulary)]);

console.log(`tfjs ${tf.version_core}, ${device}; the quickest of ${rounds} rounds`);
await compare(
  `Training step: ${EPISODES} rows of ${TOKENS} tokens, ${SCORED} scored, vocabulary ${CONFIG.vocabulary}`,
  step,
);
await compare(`Decoding: ${DECODE_ROWS} rows, ${DECODE_COLUMNS} ticks of one token, no cache at first`, async () => {
  const decoding = new DecodeBatch(decoder, Array(DECODE_ROWS).fill(null));
  for (let t = 0; t < DECODE_COLUMNS; t++) await decoding.feed(tokens.map((row) => [row[t] ?? 0]));
  decoding.end();
});
