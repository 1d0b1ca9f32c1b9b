/**
 * @module Where the time of a training step and of a decode tick goes on wasm, kernel by kernel: the stock backend against ours,
 * in alternation, in one process. `npx node bench/kernels.ts [--rounds 6]`.
 *
 * The stock backend has no UnsortedSegmentSum and could not train at all: ours stands in for it on both sides. Where we have a kernel
 * for what are several of tfjs's, the stock side runs the several.
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

/** The stock backend could not train without it. */
const LACKED = 'UnsortedSegmentSum';

/** Of each call of a kernel, in order, the quickest round [ms]: a call is short enough to go undisturbed once. */
type Times = Map<string, number[]>;

let inside = false;

/** Registers a side's kernels and no others, each timed into `times`. */
function use(kernels: ReadonlyMap<string, tf.KernelConfig>, times: Times | undefined): void {
  for (const [name, own] of ours) {
    if (tf.getKernel(name, 'wasm') !== undefined) tf.unregisterKernel(name, 'wasm');
    const kernelFunc = (kernels.get(name) ?? (name === LACKED ? own : undefined))?.kernelFunc;
    if (kernelFunc === undefined) continue;
    const mine = times?.get(name) ?? [];
    times?.set(name, mine);
    let call = 0;
    const timed: tf.KernelFunc = (args) => {
      // A kernel that calls others is charged for them.
      if (inside || times === undefined) return kernelFunc(args);
      inside = true;
      const start = performance.now();
      const result = kernelFunc(args);
      const ms = performance.now() - start;
      mine[call] = Math.min(mine[call] ?? ms, ms);
      call++;
      inside = false;
      return result;
    };
    tf.registerKernel({ kernelName: name, backendName: 'wasm', kernelFunc: times === undefined ? kernelFunc : timed });
  }
}

interface Side {
  readonly kernels: ReadonlyMap<string, tf.KernelConfig>;
  /** Without the timers, the quickest round [ms]. */
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
      use(s.kernels, s.times);
      await work();
      // The first round warms up.
      if (round < 0) s.times.clear();
      else s.total = Math.min(s.total, total);
    }
  }
  use(ours, undefined);
  const [before, after] = sides;
  console.log(`\n${title}`);
  line('kernel', 'stock: calls', 'ms', 'ours: calls', 'ms');
  const most = (name: string) => Math.max(...sides.map(({ times }) => sum(times.get(name) ?? [])));
  const names = new Set([...before.times.keys(), ...after.times.keys()]);
  for (const name of [...names].sort((a, b) => most(b) - most(a))) {
    if (most(name) > 0) row(name, before.times.get(name) ?? [], after.times.get(name) ?? []);
  }
  row('all kernels', [...before.times.values()].flat(), [...after.times.values()].flat());
  line('whole', '', before.total.toFixed(2), '', after.total.toFixed(2));
  line('stock / ours', '', '', '', (before.total / after.total).toFixed(2));
}

function sum(times: readonly number[]): number {
  return times.reduce((a, b) => a + b, 0);
}

function row(name: string, ...both: readonly (readonly number[])[]): void {
  line(name, ...both.flatMap((calls) => (calls.length === 0 ? ['', ''] : [`${calls.length}`, sum(calls).toFixed(2)])));
}

function line(name: string, ...columns: readonly string[]): void {
  console.log(name.padEnd(20) + columns.map((column) => column.padStart(14)).join(''));
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
