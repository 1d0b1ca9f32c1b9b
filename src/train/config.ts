/** @module What a run can be told: one strict schema. Types, defaults, checks, the editors' JSON Schema and docs/configuration.md all come from it. */
import { z } from 'zod';

const count = z.int().min(1);
const natural = z.int().min(0);
/** Counts of what is held in memory at once: more is a slip of the finger, and would end in a process that is killed for its memory. */
const MAX_TASKS = 1_000_000;
const MAX_ROLLOUTS = 100_000;
const MAX_LAYERS = 1000;
const MAX_PARAMETERS = 1e10;
const rollouts = count.max(MAX_ROLLOUTS);
const share = z.number().min(0).max(1);
/** Beyond these, numbers of 32 bits overflow or vanish: weights would be no numbers, some iterations after the mistake. */
const MAX_RATE = 1000;
const MAX_COEFFICIENT = 1e6;
const rate = z.number().gt(0).max(MAX_RATE);
const coefficient = z.number().min(0).max(MAX_COEFFICIENT);

/** Built-in names (`toy-lookup`), or a path to a module whose default export is the declaration. */
const moduleName = z.string().min(1);

/** A plain file name. */
const runName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/);

const environment = z.strictObject({
  module: moduleName.describe(
    'A built-in environment, or a path to a module of your own, relative to the config file.',
  ),
  options: z
    .record(z.string(), z.unknown())
    .default({})
    .describe("The environment's own options, checked by its schema."),
  maxSteps: count
    .optional()
    .describe("Requests to the policy in one episode, in place of the environment's own limit."),
  reset: z
    .enum(['state', 'context', 'isolate'])
    .optional()
    .describe(
      "How thoroughly the world is renewed between episodes, in place of the environment's own level: called again in place, in a fresh context, or in a fresh isolate.",
    ),
  isolation: z
    .enum(['thread', 'process'])
    .optional()
    .describe(
      "Where the worlds run, in place of the environment's own choice: in the worker threads, or in a process for each worker, which can be killed and costs its own episodes only. Changes speed and no result.",
    ),
});

const verifier = z.strictObject({
  module: moduleName.describe('A built-in verifier, or a path to a module of your own, relative to the config file.'),
});

const tasks = z.strictObject({
  train: count.max(MAX_TASKS).default(2000).describe('Tasks to train on.'),
  heldOut: count
    .max(MAX_TASKS)
    .default(500)
    .describe('Tasks that only evaluation sees, split off by a hash of the id.'),
  seed: natural
    .default(0)
    .describe('Fixes the task set, apart from `seed`, so that runs of several seeds meet the same tasks.'),
});

const temperature = z
  .number()
  .min(1e-4)
  .max(1e4)
  .default(1)
  .describe('Divides the logits, in sampling and in the loss alike.');

const transformer = z
  .strictObject({
    kind: z.literal('transformer').describe('A decoder of the Llama family over tokens.'),
    layers: count.max(MAX_LAYERS).default(2).describe('Decoder blocks.'),
    width: count.default(64).describe('Width of the residual stream.'),
    heads: count.default(4).describe('Query heads.'),
    kvHeads: count.default(2).describe('Key and value heads; divides `heads`.'),
    headWidth: z.int().min(2).multipleOf(2).default(16).describe('Width of one head; even, for the rotary positions.'),
    hidden: count.default(172).describe('Width of the SwiGLU layer.'),
    ropeBase: z.number().gt(1).max(1e12).default(10_000).describe('Base of the rotary frequencies.'),
    temperature,
  })
  .check((payload) => {
    const { layers, width, heads, kvHeads, headWidth, hidden } = payload.value;
    const parameters = layers * width * (2 * headWidth * (heads + kvHeads) + 3 * hidden);
    if (layers <= MAX_LAYERS && parameters > MAX_PARAMETERS) {
      payload.issues.push({
        code: 'custom',
        path: ['width'],
        input: width,
        message: `expected a model of at most ${MAX_PARAMETERS} parameters, found ${layers} layers of width ${width}, which make ${parameters.toPrecision(3)}`,
      });
    }
    if (kvHeads >= 1 && heads % kvHeads !== 0) {
      payload.issues.push({
        code: 'custom',
        path: ['kvHeads'],
        input: kvHeads,
        message: `expected a divisor of heads (${heads}), found ${kvHeads}`,
      });
    }
  });

const tabular = z.strictObject({
  kind: z.literal('tabular').describe("A softmax over the environment's discretised state."),
  temperature,
});

const mixture = z.record(z.string(), share).refine((shares) => Math.abs(sum(shares) - 1) < 1e-9, {
  error: (issue) =>
    `expected shares that sum to 1, found ${Number(sum(issue.input as Record<string, number>).toPrecision(12))}`,
});

function sum(shares: Readonly<Record<string, number>>): number {
  return Object.values(shares).reduce((total, x) => total + x, 0);
}

const warmStart = z.strictObject({
  steps: count.describe('Supervised optimizer steps.'),
  episodes: rollouts.describe('Demonstrations in one step.'),
  demonstrations: count.max(MAX_TASKS).describe('Scripted episodes to draw from, over the training tasks.'),
  learningRate: rate.describe('Learning rate of the supervised steps.'),
  decay: share.default(0).describe('Share of the steps, at the end, over which the rate falls linearly to 0.'),
  mixture: mixture.describe('Which scripts demonstrate, name: share. The shares sum to 1.'),
});

const schedule = z
  .strictObject({
    mode: z
      .enum(['deterministic', 'throughput'])
      .default('deterministic')
      .describe(
        '`deterministic`: tokens alone decide who joins the batch when. `throughput`: who is ready joins at once, and a deadline may go by the clock; the same seed then no longer gives the same bytes.',
      ),
    live: count
      .max(MAX_ROLLOUTS)
      .default(512)
      .describe(
        'Episodes that live at once, at most; as one ends the next begins. They share one decode batch: on `cpu` and `wasm` its other rows change nothing of a row, elsewhere at most its rounding.',
      ),
    deadline: count
      .optional()
      .describe(
        'Ticks of the batch that an episode may live for; then it is truncated, its score never positive. Not in evaluation, where every episode is waited for.',
      ),
    deadlineSeconds: z
      .number()
      .gt(0)
      .optional()
      .describe(
        'The same by the clock, in mode `throughput`: such an episode is left out of what is learnt from. Not in evaluation.',
      ),
    budget: count
      .optional()
      .describe(
        'Ticks after which an iteration ends, once one group is complete: what is not done goes on in the next one, under the new weights. Absent: every rollout is waited for.',
      ),
    extra: natural
      .max(MAX_ROLLOUTS)
      .default(0)
      .describe(
        'Rollouts of each task beyond `group.size`. Once `group.size` have ended the others are stopped: short episodes are then favoured, by how much is in the metrics.',
      ),
  })
  .check((payload) => {
    const { mode, deadlineSeconds } = payload.value;
    if (deadlineSeconds !== undefined && mode !== 'throughput') {
      payload.issues.push({
        code: 'custom',
        path: ['deadlineSeconds'],
        input: deadlineSeconds,
        message: `expected it with mode throughput alone (a clock decides nothing in a run that can be repeated), found ${deadlineSeconds}`,
      });
    }
  });

const algorithm = z
  .strictObject({
    estimator: z
      .enum(['grpo', 'reinforce'])
      .default('grpo')
      .describe(
        '`grpo`: one advantage an episode, the clipped ratio, a mean over tokens. `reinforce`: one advantage a step, from its return-to-go, a mean over episodes.',
      ),
    baseline: z
      .enum(['group-mean', 'leave-one-out', 'batch-mean', 'none'])
      .default('group-mean')
      .describe('What is subtracted from the return.'),
    scale: z.enum(['group-std', 'none']).default('group-std').describe('What the difference is divided by.'),
    gamma: share.default(1).describe('Discount per step.'),
    epochs: count.default(1).describe('Optimizer steps on one batch of rollouts.'),
    clipLow: share.default(0.2).describe('The ratio is clipped below 1 − clipLow (GRPO).'),
    clipHigh: coefficient.default(0.2).describe('The ratio is clipped above 1 + clipHigh (GRPO).'),
    entropy: coefficient.default(0).describe('Weight of the entropy bonus, per sampled token.'),
    kl: coefficient.default(0).describe('Weight of the KL divergence from the reference policy, per sampled token.'),
  })
  .check((payload) => {
    const { estimator, baseline, scale, epochs } = payload.value;
    if (scale === 'group-std' && baseline !== 'group-mean') {
      payload.issues.push({
        code: 'custom',
        path: ['scale'],
        input: scale,
        message: `expected none with baseline ${baseline} (an advantage divided by the deviation is bounded only about the group's mean), found ${scale}`,
      });
    }
    if (estimator === 'reinforce' && epochs > 1) {
      payload.issues.push({
        code: 'custom',
        path: ['epochs'],
        input: epochs,
        message: `expected 1 with estimator reinforce (after one step the batch is no longer on-policy), found ${epochs}`,
      });
    }
  });

const optimizer = z
  .strictObject({
    learningRate: rate.describe('Peak learning rate of AdamW.'),
    warmup: natural.default(0).describe('Iterations over which the rate rises linearly to its peak.'),
    decay: share.default(0).describe('Share of the iterations, at the end, over which the rate falls linearly to 0.'),
    beta1: z.number().min(0).lt(1).default(0.9).describe('Decay of the first moment.'),
    beta2: z.number().min(0).lt(1).default(0.95).describe('Decay of the second moment.'),
    epsilon: z.number().min(1e-30).max(1).default(1e-8).describe('Added to the root of the second moment.'),
    weightDecay: coefficient.default(0).describe('Decoupled weight decay, per step, times the learning rate.'),
    clipNorm: z.number().min(1e-9).max(1e9).default(1).describe('Bound on the global norm of the gradient.'),
  })
  .check((payload) => {
    const { learningRate, weightDecay } = payload.value;
    // Either alone is told at its own key.
    if (learningRate <= MAX_RATE && weightDecay <= MAX_COEFFICIENT && learningRate * weightDecay > 1) {
      payload.issues.push({
        code: 'custom',
        path: ['weightDecay'],
        input: weightDecay,
        message: `expected at most 1 / learningRate, ${Number((1 / learningRate).toPrecision(3))} (beyond it a step turns the weights over instead of shrinking them), found ${weightDecay}`,
      });
    }
  });

/** The whole of a config file. `Config` is what it parses to, with every default filled in. */
export const configSchema = z
  .strictObject({
    name: runName.optional().describe("Name of the run's folder; the config file's own name where absent."),
    seed: natural.default(0).describe('All randomness of the run derives from it.'),
    backend: z
      .enum(['auto', 'cuda', 'native', 'webgpu', 'wasm', 'cpu'])
      .default('auto')
      .describe('Where tensors are computed; `auto` takes the first that works.'),
    replay: z
      .boolean()
      .default(true)
      .describe(
        'On `native` and `cuda`: record the training step and the decode step, and replay them as graphs. Changes results by rounding only; false runs them operation by operation.',
      ),
    workers: z
      .union([z.int().min(1).max(1024), z.literal('auto')])
      .default('auto')
      .describe('Worker threads for rollouts; `auto` is one for each available core. Changes speed and no result.'),
    iterations: natural.describe('Rounds of rollouts and learning.'),
    environment: environment.describe('Where the agent lives.'),
    verifier: verifier.describe('How an episode is judged.'),
    tasks: tasks.prefault({}).describe('The task set.'),
    policy: z.discriminatedUnion('kind', [transformer, tabular]).describe('Who acts and learns.'),
    warmStart: warmStart
      .optional()
      .describe('Supervised steps on scripted demonstrations, before the first iteration.'),
    algorithm: algorithm.prefault({}).describe('How rollouts become a gradient.'),
    batch: z
      .strictObject({
        groups: rollouts.describe('Groups in one iteration: each is one task.'),
        microTokens: count
          .default(16_384)
          .describe('Padded tokens of one pass through the model; changes memory, and results by rounding only.'),
      })
      .describe('What one iteration collects.'),
    group: z
      .strictObject({
        size: rollouts.describe(
          'Rollouts of each task, begun under one policy version; with `rollouts.budget` in one or more iterations.',
        ),
      })
      .describe('The rollouts that share a baseline.'),
    rollouts: schedule.prefault({}).describe('How the episodes of a transformer share its batch.'),
    optimizer: optimizer.describe('AdamW.'),
    reward: z
      .strictObject({
        stepPenalty: coefficient
          .default(0)
          .describe('Charged for every request to the policy, the final answer included.'),
      })
      .prefault({})
      .describe("The verifier's score, less what the steps cost."),
    evaluation: z
      .strictObject({
        tasks: count
          .default(500)
          .describe('Held-out tasks in one evaluation; all of `tasks.heldOut` where those are fewer.'),
        every: natural.default(0).describe('Iterations from one evaluation to the next; 0: only at the ends.'),
      })
      .prefault({})
      .describe('Judging the policy on held-out tasks.'),
    checkpoint: z
      .strictObject({
        every: count.default(10).describe('Iterations from one checkpoint to the next.'),
        keep: count.default(2).describe('How many of the latest are kept.'),
      })
      .prefault({})
      .describe('What a run is resumed from.'),
    runs: z
      .strictObject({
        dir: z
          .string()
          .min(1)
          .refine((dir) => !dir.includes('\0'), { error: 'expected a path, found a text with a NUL character' })
          .default('runs')
          .describe('Folder that run folders are made in.'),
      })
      .prefault({})
      .describe('Where runs are kept.'),
  })
  .check((payload) => {
    const { algorithm: learning, batch, group, policy, rollouts: schedule } = payload.value;
    const { size } = group;
    if (schedule.budget !== undefined && learning.estimator === 'reinforce') {
      payload.issues.push({
        code: 'custom',
        path: ['rollouts', 'budget'],
        input: schedule.budget,
        message: `expected it with estimator grpo alone (what was sampled under older weights needs its ratio), found ${schedule.budget}`,
      });
    }
    if (schedule.budget !== undefined && schedule.extra > 0) {
      payload.issues.push({
        code: 'custom',
        path: ['rollouts', 'extra'],
        input: schedule.extra,
        message: `expected 0 with a budget (stragglers are carried over and not stopped), found ${schedule.extra}`,
      });
    }
    for (const key of (['deadline', 'deadlineSeconds'] as const).filter((key) => schedule[key] !== undefined)) {
      if (schedule.budget === undefined) continue;
      payload.issues.push({
        code: 'custom',
        path: ['rollouts', key],
        input: schedule[key],
        message: `expected none with a budget (it would begin anew each time that a rollout is carried over), found ${schedule[key]}`,
      });
    }
    const inWorkers = policy.kind === 'tabular' ? (['extra', 'budget', 'deadline', 'deadlineSeconds'] as const) : [];
    for (const key of inWorkers.filter((key) => (schedule[key] ?? 0) > 0)) {
      payload.issues.push({
        code: 'custom',
        path: ['rollouts', key],
        input: schedule[key],
        message: `expected it with policy.kind transformer alone (a tabular policy acts in the workers, without a batch), found ${schedule[key]}`,
      });
    }
    const refuse = (message: string) =>
      payload.issues.push({ code: 'custom', path: ['group', 'size'], input: size, message });
    const alone = learning.baseline === 'batch-mean' ? size * batch.groups === 1 : size === 1;
    if (learning.baseline !== 'none' && alone) {
      refuse(
        `expected at least 2 with baseline ${learning.baseline} (against itself every rollout has advantage 0), found 1`,
      );
    }
    // Either alone is told at its own key.
    if (Math.max(size, batch.groups) <= MAX_ROLLOUTS && (size + schedule.extra) * batch.groups > MAX_ROLLOUTS) {
      refuse(
        `expected at most ${MAX_ROLLOUTS} rollouts in one iteration, found ${batch.groups} groups of ${size + schedule.extra}`,
      );
    }
  });

export type Config = z.infer<typeof configSchema>;
