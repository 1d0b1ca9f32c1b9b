/**
 * @module Whole GRPO steps without an environment: prompts of 8 tokens, G completions of 32 tokens each, reward, advantages, packing and
 * the update, by the parts that a run uses. Prints one JSON object. `node bench/grpo-step.ts [--steps 12] [--backend native] [--eager]`
 */
import { parseArgs } from 'node:util';
import { BENCH_MODELS } from '../src/bench/train.ts';
import { now } from '../src/io/clock.ts';
import { selectBackend } from '../src/policy/backends/select.ts';
import { TransformerPolicy } from '../src/policy/generate.ts';
import type { TokenReply, TokenRequest } from '../src/policy/token-policy.ts';
import { transformer } from '../src/policy/transformer/model.ts';
import { ReplayedDecoder } from '../src/policy/transformer/replayed-decoder.ts';
import { deriveSeed, generator } from '../src/records/random.ts';
import { type Episode, TRAJECTORY_FORMAT, type Trajectory } from '../src/records/trajectory.ts';
import { groupAdvantages } from '../src/train/advantages.ts';
import { packBatch } from '../src/train/batch.ts';
import { Learner } from '../src/train/learner.ts';
import { iterationMetrics } from '../src/train/metrics.ts';
import { judge } from '../src/train/returns.ts';
import { stepsOf } from '../src/train/steps-of.ts';

const { values } = parseArgs({
  options: {
    steps: { type: 'string', default: '12' },
    backend: { type: 'string', default: 'native' },
    eager: { type: 'boolean', default: false },
  },
});

const [GROUPS, GROUP_SIZE, PROMPT, NEW] = [8, 8, 8, 32];
/** As TRL's GRPO by default: no division by the length, ε = 0.2, no KL. */
const ALGORITHM = {
  estimator: 'grpo',
  baseline: 'group-mean',
  scale: 'group-std',
  gamma: 1,
  epochs: 1,
  clipLow: 0.2,
  clipHigh: 0.2,
  entropy: 0,
  kl: 0,
} as const;
const RATE = 1e-4;

const backend = await selectBackend(values.backend as 'native');
const config = BENCH_MODELS['0.4'];
const model = transformer(config);
const optimizer = {
  learningRate: RATE,
  warmup: 0,
  decay: 0,
  beta1: 0.9,
  beta2: 0.999,
  epsilon: 1e-8,
  weightDecay: 0,
  clipNorm: 1,
};
const microTokens = GROUPS * GROUP_SIZE * (PROMPT + NEW);
const learner = new Learner(
  (start) => stepsOf(model, !values.eager, start),
  { algorithm: ALGORITHM, optimizer, temperature: 1, microTokens },
  { weights: model.init(generator('grpo-step')) },
);
const replay = values.eager ? undefined : new ReplayedDecoder({ config, grammar: null, temperature: 1 });

function requestsOf(step: number): TokenRequest[] {
  return Array.from({ length: GROUPS * GROUP_SIZE }, (_, row) => {
    const prompt = step * GROUPS + Math.floor(row / GROUP_SIZE);
    return {
      episodeId: `${step}.${row}`,
      newIds: Array.from({ length: PROMPT }, (_, j) => 2 + ((prompt * 7 + j) % 250)),
      maxTokens: NEW,
      seed: deriveSeed('grpo-step', step, row),
    };
  });
}

/** The record that a rollout worker would have sent, but for its hashes, which nothing here reads. The reward counts one token. */
function trajectoryOf(
  step: number,
  row: number,
  { newIds, seed, episodeId }: TokenRequest,
  reply: TokenReply,
): Trajectory {
  const given = newIds.map(() => null);
  const sampled = { start: newIds.length, end: newIds.length + reply.ids.length };
  const group = `${step}.${Math.floor(row / GROUP_SIZE)}`;
  const episode: Episode = {
    format: TRAJECTORY_FORMAT,
    id: episodeId,
    group,
    taskId: group,
    iteration: step,
    rollout: row % GROUP_SIZE,
    seed,
    policy: 'transformer',
    prompt: '',
    stop: 'final',
    final: '',
    hash: '',
    steps: [
      { index: 0, action: { text: '', calls: [], final: '' }, calls: [], tokens: { segment: 0, ...sampled }, hash: '' },
    ],
    segments: [
      {
        ids: [...newIds, ...reply.ids],
        actionMask: [...newIds.map(() => 0 as const), ...reply.ids.map(() => 1 as const)],
        logprobs: [...given, ...(reply.logprobs ?? [])],
        policyVersion: [...given, ...reply.ids.map(() => step)],
        trainable: true,
      },
    ],
  };
  const score = reply.ids.filter((id) => id === 7).length;
  return judge(episode, { score, success: score > 0, reasons: [] }, 0);
}

const marks: { start: number; generated: number; packed: number; end: number }[] = [];
for (let step = 0; step < Number(values.steps); step++) {
  const start = now();
  const policy = new TransformerPolicy({
    ...{ config, weights: learner.weights, version: learner.version, grammar: null, replay },
    // No id ends an action, so that every row samples as many.
    ...{ tokenizer: { size: config.vocabulary, end: -1 }, temperature: 1, greedy: false },
  });
  const requests = requestsOf(step);
  const replies = await policy.generate(requests);
  policy.release(requests.map(({ episodeId }) => episodeId));
  const generated = now();
  const trajectories = replies.map((reply, row) => trajectoryOf(step, row, requests[row] as TokenRequest, reply));
  const advantages = groupAdvantages(trajectories, ALGORITHM);
  const batch = packBatch({ trajectories, advantages: advantages.byEpisode, denominator: 'tokens' });
  const packed = now();
  const update = await learner.reinforce(batch, RATE);
  iterationMetrics({
    batch: null,
    iteration: step,
    version: step,
    trajectories,
    advantages: advantages.statistics,
    update,
    rate: RATE,
  });
  marks.push({ start, generated, packed, end: now() });
}

/** The first three record, and warm up. */
const measured = marks.slice(3);
const median = (of: (mark: (typeof marks)[number]) => number): number =>
  measured.map(of).toSorted((a, b) => a - b)[measured.length >> 1] ?? Number.NaN;
console.log(
  JSON.stringify({
    backend: backend.name,
    mode: values.eager ? 'eager' : 'replay',
    steps: measured.length,
    stepMs: median(({ start, end }) => end - start),
    generateMs: median(({ start, generated }) => generated - start),
    packMs: median(({ generated, packed }) => packed - generated),
    updateMs: median(({ packed, end }) => end - packed),
  }),
);
learner.dispose();
replay?.dispose();
