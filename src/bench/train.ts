/** @module The bench of training: a step and decoding at three sizes, as `isogym bench train` measures them. The clock is an argument. */
import * as tf from '@tensorflow/tfjs';
import type { BackendName } from '../policy/backends/backend.ts';
import { TransformerPolicy } from '../policy/generate.ts';
import { canReplay } from '../policy/replay/session.ts';
import type { TransformerConfig } from '../policy/transformer/config.ts';
import { transformer } from '../policy/transformer/model.ts';
import { ReplayedDecoder } from '../policy/transformer/replayed-decoder.ts';
import { deriveSeed, generator } from '../records/random.ts';
import { type Batch, layOut, type Row } from '../train/batch.ts';
import { EagerSteps, onDevice } from '../train/eager-steps.ts';
import { ReplayedSteps } from '../train/replayed-steps.ts';
import { median } from '../train/statistics.ts';
import type { UpdateOptions } from '../train/steps.ts';

const LLAMA = { ropeBase: 10_000, epsilon: 1e-5, tied: true };

/** By their millions of parameters. The first is the model of the comparison with TRL. */
export const BENCH_MODELS: Readonly<Record<'0.4' | '6' | '30', TransformerConfig>> = {
  '0.4': { ...LLAMA, vocabulary: 256, layers: 2, width: 128, heads: 4, kvHeads: 4, headWidth: 32, hidden: 344 },
  '6': { ...LLAMA, vocabulary: 1024, layers: 6, width: 256, heads: 8, kvHeads: 4, headWidth: 32, hidden: 1024 },
  '30': { ...LLAMA, vocabulary: 2048, layers: 10, width: 512, heads: 8, kvHeads: 4, headWidth: 64, hidden: 1408 },
};

export type BenchMode = 'eager' | 'replay';

export interface BenchResult {
  readonly backend: BackendName;
  readonly mode: BenchMode;
  readonly parameters: number;
  /** Of the training step: rows × length tokens, each predicted but the first of a row. */
  readonly rows: number;
  readonly length: number;
  /** What each figure is the median of, at least. */
  readonly passes: number;
  /** Of forward, backward, clipping and AdamW, packing and reading included [ms]. */
  readonly trainStepMs: number;
  /** Of the training step's tokens: rows and their length are padded to a multiple of 8, replayed to a bucket as well. */
  readonly paddingShare: number;
  /** Of a training step: eagerly the kernels that tfjs calls, replayed the nodes of the recorded graphs before TensorFlow prunes them. */
  readonly operationsPerStep: number;
  /** A prompt of `PROMPT` tokens and `NEW` sampled ones, over `NEW` [ms]. */
  readonly decode: readonly { readonly rows: number; readonly msPerToken: number }[];
  readonly tensorsLeaked: number;
  /** Resident memory of the process at the end. */
  readonly memoryMiB: number;
}

export interface BenchOptions {
  readonly backend: BackendName;
  readonly model: TransformerConfig;
  readonly mode: BenchMode;
  readonly rows: number;
  readonly length: number;
  readonly decodeRows: readonly number[];
  /** For each figure at least, after one unmeasured pass: so long [ms] … */
  readonly budgetMs: number;
  /** … and so many passes, 20 at most. */
  readonly passes: number;
  readonly now: () => number;
  readonly residentMiB: () => number;
}

const PROMPT = 8;
const NEW = 32;
const MOST_PASSES = 20;

/** The backend must be set; `replay` only where `canReplay`. */
export async function benchTrain(options: BenchOptions): Promise<BenchResult> {
  const { model, mode, rows, length, backend } = options;
  const tensors = tf.memory().numTensors;
  const weights = transformer(model).init(generator('bench'));
  const parameters = Object.values(weights).reduce((sum, { data }) => sum + data.length, 0);
  const replay = mode === 'replay' && canReplay();
  const steps = replay
    ? new ReplayedSteps(transformer(model), { weights })
    : new EagerSteps(transformer(model), { weights });
  const update: UpdateOptions = {
    batch: benchBatch(model.vocabulary, rows, length),
    microTokens: rows * length,
    objective: { kind: 'policy', temperature: 1, clipLow: 0.2, clipHigh: 0.2, entropyCoefficient: 0, klCoefficient: 0 },
    optimizer: { learningRate: 1e-5, beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weightDecay: 0 },
    maxNorm: 1,
    epochs: 1,
  };
  const trainStepMs = await medianMs(() => steps.update(update), options);
  let paddingShare = Number.NaN;
  const kernels = await kernelsOf(async () => {
    ({ paddingShare } = await steps.update(update));
  });
  const operationsPerStep = steps instanceof ReplayedSteps ? steps.operations : kernels;
  steps.dispose();

  const onBackend = onDevice(weights);
  const decoder = replay ? new ReplayedDecoder({ config: model, grammar: null, temperature: 1 }) : undefined;
  const decode: { rows: number; msPerToken: number }[] = [];
  for (const count of options.decodeRows) {
    const ms = await medianMs((pass) => generateOnce(model, onBackend, decoder, count, pass), options);
    decode.push({ rows: count, msPerToken: ms / NEW });
  }
  decoder?.dispose();
  tf.dispose(Object.values(onBackend));
  return {
    backend,
    mode,
    parameters,
    rows,
    length,
    passes: options.passes,
    trainStepMs,
    paddingShare,
    operationsPerStep,
    decode,
    tensorsLeaked: tf.memory().numTensors - tensors,
    memoryMiB: Math.round(options.residentMiB()),
  };
}

async function generateOnce(
  config: TransformerConfig,
  weights: ReturnType<typeof onDevice>,
  replay: ReplayedDecoder | undefined,
  rows: number,
  pass: number,
): Promise<void> {
  // No id ends an action, so that every row samples as many.
  const tokenizer = { size: config.vocabulary, end: -1 };
  const policy = new TransformerPolicy({
    config,
    weights,
    grammar: null,
    tokenizer,
    temperature: 1,
    greedy: false,
    version: 0,
    replay,
  });
  const random = generator(deriveSeed('bench', 'prompts', pass));
  const requests = Array.from({ length: rows }, (_, r) => ({
    episodeId: `${r}`,
    newIds: Array.from({ length: PROMPT }, () => Math.floor(random() * config.vocabulary)),
    maxTokens: NEW,
    seed: deriveSeed('bench', pass, r),
  }));
  await policy.generate(requests);
  policy.release(requests.map(({ episodeId }) => episodeId));
}

/** How many of tfjs's kernels `work` calls. */
async function kernelsOf(work: () => Promise<void>): Promise<number> {
  const engine = tf.engine() as unknown as { runKernelFunc(call: { readonly kernelName?: string }): unknown };
  const { runKernelFunc } = engine;
  let kernels = 0;
  engine.runKernelFunc = (call) => {
    if (call.kernelName !== undefined) kernels++;
    return runKernelFunc.call(engine, call);
  };
  try {
    await work();
  } finally {
    // An own property hid the prototype's.
    delete (engine as { runKernelFunc?: unknown }).runKernelFunc;
  }
  return kernels;
}

async function medianMs(
  pass: (n: number) => Promise<unknown>,
  { now, budgetMs, passes }: BenchOptions,
): Promise<number> {
  await pass(0);
  const times: number[] = [];
  const begin = now();
  while (times.length < passes || (now() - begin < budgetMs && times.length < MOST_PASSES)) {
    const start = now();
    await pass(times.length + 1);
    times.push(now() - start);
  }
  return median(times);
}

/** Random tokens, all but the first of each row scored. */
export function benchBatch(vocabulary: number, rows: number, length: number): Batch {
  const random = generator('bench/batch');
  const made = Array.from({ length: rows }, (_, r): Row => {
    const ids = Array.from({ length }, () => Math.floor(random() * vocabulary));
    const sampled = Array.from({ length: length - 1 }, (_, i) => ({
      at: i + 1,
      behaviour: -Math.log(vocabulary),
      advantage: r % 2 === 0 ? 1 : -1,
      mask: 0,
    }));
    return { episode: `${r}`, segment: 0, ids, sampled };
  });
  return layOut(made, undefined, rows * (length - 1));
}
