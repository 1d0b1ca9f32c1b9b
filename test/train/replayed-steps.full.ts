/** A long life of replayed steps and decoding: shapes change at every step, memory does not. */
import * as tf from '@tensorflow/tfjs';
import { describe, expect, test } from 'vitest';
import { selectBackend } from '../../src/policy/backends/select.ts';
import { TransformerPolicy } from '../../src/policy/generate.ts';
import { transformer } from '../../src/policy/transformer/model.ts';
import { ReplayedDecoder } from '../../src/policy/transformer/replayed-decoder.ts';
import { generator } from '../../src/records/random.ts';
import { ReplayedSteps } from '../../src/train/replayed-steps.ts';
import { NATIVE, NATIVE_BACKEND } from '../policy/backends/native.ts';
import { SMALL, tensors, wildWeights } from '../policy/transformer/fixtures.ts';
import { OBJECTIVES, raggedBatch } from './replay-cases.ts';

const OPTIMIZER = { learningRate: 1e-3, beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weightDecay: 0 };

describe.skipIf(!NATIVE)('over 2,000 steps of changing shapes', () => {
  test('training keeps its memory and records a few shapes', async () => {
    await selectBackend(NATIVE_BACKEND);
    const steps = new ReplayedSteps(transformer(SMALL), { weights: wildWeights(SMALL, 'long', 0.3) });
    const random = generator('long');
    const below = (n: number) => Math.floor(random() * n);
    const step = () => {
      const lengths = Array.from({ length: 13 + below(4) }, () => 4 + below(28));
      const batch = raggedBatch({ lengths, vocabulary: SMALL.vocabulary, states: 3, seed: String(random()) });
      const objective = OBJECTIVES.policy!;
      return steps.update({ batch, microTokens: 1e4, objective, optimizer: OPTIMIZER, maxNorm: 1, epochs: 1 });
    };
    for (let n = 0; n < 1000; n++) await step();
    const { numTensors } = tf.memory();
    const [recordings, rss] = [steps.recordings, process.memoryUsage().rss / 2 ** 20];
    for (let n = 0; n < 1000; n++) await step();
    console.log(
      `${steps.recordings} recordings; ${rss.toFixed(0)} MiB, then ${(process.memoryUsage().rss / 2 ** 20).toFixed(0)} MiB`,
    );
    expect(tf.memory().numTensors).toBe(numTensors);
    expect(steps.recordings).toBeLessThanOrEqual(20);
    expect(steps.recordings - recordings).toBeLessThanOrEqual(2);
    expect(process.memoryUsage().rss / 2 ** 20 - rss).toBeLessThan(100);
    steps.dispose();
  });

  test('decoding keeps its memory and records a few shapes', async () => {
    await selectBackend(NATIVE_BACKEND);
    const weights = tensors(wildWeights(SMALL, 'long', 0.35));
    const replay = new ReplayedDecoder({ config: SMALL, grammar: null, temperature: 1 });
    const tokenizer = { size: SMALL.vocabulary, end: 10 };
    const random = generator('decode');
    const before = tf.memory().numTensors;
    let rss = 0;
    for (let n = 0; n < 600; n++) {
      if (n === 300) rss = process.memoryUsage().rss / 2 ** 20;
      const policy = new TransformerPolicy({
        config: SMALL,
        weights,
        version: n,
        grammar: null,
        tokenizer,
        temperature: 1,
        greedy: false,
        replay,
      });
      const rows = 1 + Math.floor(random() * 20);
      const requests = Array.from({ length: rows }, (_, r) => ({
        episodeId: `${r}`,
        newIds: Array.from({ length: 1 + Math.floor(random() * 12) }, () => Math.floor(random() * 10)),
        maxTokens: 20,
        seed: `${n}/${r}`,
      }));
      await policy.generate(requests);
      policy.release(requests.map(({ episodeId }) => episodeId));
    }
    console.log(
      `${replay.recordings} recordings; ${rss.toFixed(0)} MiB, then ${(process.memoryUsage().rss / 2 ** 20).toFixed(0)} MiB`,
    );
    expect(tf.memory().numTensors).toBe(before);
    expect(replay.recordings).toBeLessThanOrEqual(12);
    expect(process.memoryUsage().rss / 2 ** 20 - rss).toBeLessThan(100);
    replay.dispose();
    tf.dispose(weights as tf.NamedTensorMap);
  });
});
