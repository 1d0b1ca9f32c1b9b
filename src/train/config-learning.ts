/** @module The sections of a config that say who acts and how it learns. */
import { z } from 'zod';
import {
  coefficient,
  count,
  MAX_COEFFICIENT,
  MAX_RATE,
  MAX_TASKS,
  natural,
  rate,
  rollouts,
  share,
} from './config-values.ts';

/** More is a slip of the finger, and would end in a process that is killed for its memory. */
const MAX_LAYERS = 1000;
const MAX_PARAMETERS = 1e10;

const temperature = z
  .number()
  .min(1e-4)
  .max(1e4)
  .default(1)
  .describe('Divides the logits, in sampling and in the loss alike.');

export const transformer = z
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

export const tabular = z.strictObject({
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

export const warmStart = z.strictObject({
  steps: count.describe('Supervised optimizer steps.'),
  episodes: rollouts.describe('Demonstrations in one step.'),
  demonstrations: count.max(MAX_TASKS).describe('Scripted episodes to draw from, over the training tasks.'),
  learningRate: rate.describe('Learning rate of the supervised steps.'),
  decay: share.default(0).describe('Share of the steps, at the end, over which the rate falls linearly to 0.'),
  mixture: mixture.describe('Which scripts demonstrate, name: share. The shares sum to 1.'),
});

export const algorithm = z
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

export const optimizer = z
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
