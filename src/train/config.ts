/** @module What a run can be told: one strict schema. Types, defaults, checks, the editors' JSON Schema and docs/configuration.md all come from it. */
import { z } from 'zod';
import { algorithm, optimizer, tabular, transformer, warmStart } from './config-learning.ts';
import { coefficient, count, MAX_ROLLOUTS, MAX_TASKS, natural, rollouts } from './config-values.ts';

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
        'Ticks after which an iteration ends, once one group is complete: what is not done goes on in the next one, under its weights. Absent: every rollout is waited for.',
      ),
    extra: natural
      .max(MAX_ROLLOUTS)
      .default(0)
      .describe(
        'Rollouts of each task beyond `group.size`. Once `group.size` have ended the others are stopped: short episodes are then favoured, by how much is in the metrics.',
      ),
    staleness: natural
      .max(1)
      .default(0)
      .describe(
        'Iterations that the weights of the rollouts are behind. 0: each iteration rolls out with what the one before has learnt. 1: the next rollouts run while the learner, in a process of its own, learns from the last ones; the ratio of GRPO makes up for it.',
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
    for (const key of (['budget', 'staleness'] as const).filter((key) => (schedule[key] ?? 0) > 0)) {
      if (learning.estimator !== 'reinforce') continue;
      payload.issues.push({
        code: 'custom',
        path: ['rollouts', key],
        input: schedule[key],
        message: `expected it with estimator grpo alone (what was sampled under older weights needs its ratio), found ${schedule[key]}`,
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
