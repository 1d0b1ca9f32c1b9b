/**
 * @module A training step (forward, backward, clipping, AdamW) of the 0.4 M model on isogym's wasm against the stock wasm backend and
 * against cpu, each in a process of its own, in turns. `node bench/against-stock.ts [--rounds 3] [--cpu-rounds 1] [--rows 16] [--length 128]`
 *
 * Stock cannot differentiate a gather: it lacks UnsortedSegmentSum. Here its gathers run as they are, and their gradients as products
 * with one-hot rows, which costs it less than one-hot products both ways would. All three run the same model code; where we have a
 * kernel for what are several of tfjs's operations, the others run the several. One thread computes in each.
 */
import { execFileSync } from 'node:child_process';
import { cpus, loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import * as tf from '@tensorflow/tfjs';
import '@tensorflow/tfjs-backend-wasm';
import { BENCH_MODELS, benchBatch } from '../src/bench/train.ts';
import { selectBackend } from '../src/policy/backends/select.ts';
import { transformer } from '../src/policy/transformer/model.ts';
import { generator } from '../src/records/random.ts';
import { EagerSteps } from '../src/train/eager-steps.ts';
import { median } from '../src/train/statistics.ts';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    'cpu-rounds': { type: 'string', default: '1' },
    rows: { type: 'string', default: '16' },
    length: { type: 'string', default: '128' },
    one: { type: 'string' },
  },
});
const SIDES = ['wasm', 'stock', 'cpu'] as const;
type Side = (typeof SIDES)[number];

interface Figures {
  /** The quickest step, by the process's own time on the processors and by the clock [ms]. */
  readonly cpuMs: number;
  readonly wallMs: number;
  /** Of the first step: the three must agree. */
  readonly gradientNorm: number;
}

/** Stock's gradient of a gather: onehot(ids)ᵀ · x. */
const oneHotSegmentSum: tf.KernelFunc = ({ inputs, backend, attrs }) => {
  const { x, segmentIds } = inputs as { x: tf.TensorInfo; segmentIds: tf.TensorInfo };
  const segments = (attrs as { numSegments: number }).numSegments;
  const run = (name: string, operands: tf.NamedTensorInfoMap, attributes: tf.NamedAttrMap): tf.TensorInfo =>
    tf.getKernel(name, 'wasm').kernelFunc({ inputs: operands, backend, attrs: attributes }) as tf.TensorInfo;
  // As float32 the stock kernel writes the bits of the whole number 1.
  const hot = run('OneHot', { indices: segmentIds }, { depth: segments, onValue: 1, offValue: 0, dtype: 'int32' });
  const rows = run('Cast', { x: hot }, { dtype: 'float32' });
  const out = run('BatchMatMul', { a: rows, b: x }, { transposeA: true, transposeB: false });
  for (const { dataId } of [hot, rows]) (backend as unknown as tf.KernelBackend).disposeData(dataId);
  return out;
};

async function measure(side: Side, steps: number): Promise<Figures> {
  if (side === 'stock') {
    // Loads the module from where it is installed, and puts every kernel back that was replaced.
    const stock = tf.getKernelsForBackend('wasm');
    await selectBackend('wasm');
    for (const { kernelName } of tf.getKernelsForBackend('wasm')) tf.unregisterKernel(kernelName, 'wasm');
    for (const kernel of stock) tf.registerKernel(kernel);
    tf.registerKernel({ kernelName: 'UnsortedSegmentSum', backendName: 'wasm', kernelFunc: oneHotSegmentSum });
  } else {
    await selectBackend(side);
  }
  const config = BENCH_MODELS['0.4'];
  const [rows, length] = [Number(values.rows), Number(values.length)];
  const model = transformer(config);
  const learner = new EagerSteps(model, { weights: model.init(generator('bench')) });
  const update = {
    batch: benchBatch(config.vocabulary, rows, length),
    microTokens: rows * length,
    objective: {
      kind: 'policy' as const,
      temperature: 1,
      clipLow: 0.2,
      clipHigh: 0.2,
      entropyCoefficient: 0,
      klCoefficient: 0,
    },
    optimizer: { learningRate: 1e-5, beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weightDecay: 0 },
    maxNorm: 1,
    epochs: 1,
  };
  let [cpuMs, wallMs, gradientNorm] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, Number.NaN];
  // The first warms up; on cpu it would be a minute more.
  for (let step = side === 'cpu' ? 0 : -1; step < steps; step++) {
    const used = process.cpuUsage();
    const start = performance.now();
    const { steps } = await learner.update(update);
    if (Number.isNaN(gradientNorm)) gradientNorm = steps[0]?.gradientNorm ?? Number.NaN;
    const wall = performance.now() - start;
    const { user, system } = process.cpuUsage(used);
    if (step < 0) continue;
    wallMs = Math.min(wallMs, wall);
    cpuMs = Math.min(cpuMs, (user + system) / 1000);
  }
  learner.dispose();
  return { cpuMs, wallMs, gradientNorm };
}

function inProcess(side: Side): Figures {
  const args = [fileURLToPath(import.meta.url), '--one', side, '--rows', values.rows, '--length', values.length];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }));
}

if (values.one !== undefined) {
  const side = SIDES.find((name) => name === values.one);
  if (side === undefined) throw new Error(`--one: expected ${SIDES.join(', ')}, found ${values.one}`);
  console.log(JSON.stringify(await measure(side, side === 'cpu' ? 1 : side === 'stock' ? 2 : 8)));
} else {
  const load = loadavg()[0]?.toFixed(1);
  const all = new Map<Side, Figures[]>(SIDES.map((side) => [side, []]));
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const side of SIDES) {
      if (side === 'cpu' && round >= Number(values['cpu-rounds'])) continue;
      const figures = inProcess(side);
      console.error(`${side}: ${JSON.stringify(figures)}`);
      all.get(side)?.push(figures);
    }
  }
  const of = (side: Side, what: 'cpuMs' | 'wallMs') => median((all.get(side) ?? []).map((figures) => figures[what]));
  const result = Object.fromEntries(
    SIDES.map((side) => [side, { cpuMs: of(side, 'cpuMs'), wallMs: of(side, 'wallMs') }]),
  );
  const over = (side: Side) => Number((of(side, 'cpuMs') / of('wasm', 'cpuMs')).toFixed(2));
  console.log(
    JSON.stringify(
      {
        machine: { cpu: `${cpus()[0]?.model.trim()}, ${cpus().length} cores`, node: process.versions.node, load },
        command: `node bench/against-stock.ts --rounds ${values.rounds} --rows ${values.rows} --length ${values.length}`,
        result,
        stockOverWasm: over('stock'),
        cpuOverWasm: over('cpu'),
      },
      null,
      2,
    ),
  );
}
