import * as tf from '@tensorflow/tfjs';
import { beforeEach, describe, expect, it } from 'vitest';
import { selectBackend } from '../../src/policy/backends/select.ts';
import type { Grammar } from '../../src/policy/grammar/index.ts';
import type { Model, NamedTensors } from '../../src/policy/model.ts';
import { sampleToken } from '../../src/policy/sampling.ts';
import { generator } from '../../src/records/random.ts';
import type { Trajectory } from '../../src/records/trajectory.ts';
import { type Batch, type PackOptions, packBatch, split } from '../../src/train/batch.ts';
import { judge } from '../../src/train/returns.ts';
import {
  disposeState,
  initialState,
  type Objective,
  readStatistics,
  type TrainState,
  trainStep,
} from '../../src/train/step.ts';
import { episode, segment, verdict } from './made.ts';

beforeEach(() => selectBackend('cpu'));

/** Logits from the previous token alone: a row of a table, a bias, and a head that no loss uses. */
const VOCABULARY = 6;
const bigram: Model = {
  name: 'bigram',
  vocabulary: VOCABULARY,
  init: (random) => ({
    // First, where an optimizer by position would mix it up with the others.
    'value.head': { shape: [2, 2], data: Float32Array.of(1, 2, 3, 4) },
    table: {
      shape: [VOCABULARY, VOCABULARY],
      data: Float32Array.from({ length: VOCABULARY ** 2 }, () => 4 * random() - 2),
    },
    bias: { shape: [VOCABULARY], data: new Float32Array(VOCABULARY) },
  }),
  logits({ table, bias }, { ids, scored }) {
    const before = tf.gather(tf.reshape(ids, [-1]), scored);
    return tf.add(tf.gather(table!, tf.cast(before, 'int32')), bias!) as tf.Tensor2D;
  },
};
const fresh = (seed = 'weights'): NamedTensors =>
  Object.fromEntries(
    Object.entries(bigram.init(generator(seed))).map(([name, { shape, data }]) => [name, tf.tensor(data, [...shape])]),
  );

const OPTIMIZER = { learningRate: 0.05, beta1: 0.9, beta2: 0.99, epsilon: 1e-8, weightDecay: 0.1 };
const TEMPERATURE = 0.6;
const POLICY: Objective = {
  kind: 'policy',
  temperature: TEMPERATURE,
  clipLow: 0.2,
  clipHigh: 0.2,
  entropyCoefficient: 0.01,
  klCoefficient: 0.05,
};
const SUPERVISED: Objective = { kind: 'supervised', temperature: 1 };

/** Letters 1 to 4 until the end, 0; after a letter no smaller one. */
const grammar: Grammar = {
  start: 1,
  allowed: (state) => Int32Array.from([0, 1, 2, 3, 4].filter((id) => id === 0 || id >= state)),
  next: (_, id) => id,
};

/** Episodes sampled from the model's own logits, with the logprobs that they were sampled with. */
function rollOut(weights: NamedTensors, count: number, constrained: boolean, seed = 'rollouts'): Trajectory[] {
  const random = generator(seed);
  const [table, bias] = [weights.table!.dataSync<'float32'>(), weights.bias!.dataSync<'float32'>()];
  const logits = table.map((value, i) => value + bias[i % VOCABULARY]!);
  const all = Int32Array.from({ length: VOCABULARY }, (_, id) => id);
  return Array.from({ length: count }, (_, e) => {
    const ids: number[] = [];
    const logprobs: (number | null)[] = [];
    let mask = '';
    for (let step = 0; step < 1 + (e % 3); step++) {
      for (let given = 0; given <= (e + step) % 4; given++) {
        ids.push(5);
        logprobs.push(null);
        mask += '0';
      }
      let state = grammar.start;
      for (let sampled = 0; sampled < 6 && ids.at(-1) !== 0; sampled++) {
        const allowed = constrained ? grammar.allowed(state) : all;
        const { id, logprob } = sampleToken(logits, ids.at(-1)! * VOCABULARY, allowed, TEMPERATURE, random());
        state = grammar.next(state, id);
        ids.push(id);
        logprobs.push(logprob);
        mask += '1';
      }
    }
    return judge(episode({ id: `e${e}`, segments: [segment(mask, { ids, logprobs })] }), verdict(1), 0);
  });
}

function pack(
  trajectories: readonly Trajectory[],
  constrained = true,
  denominator: PackOptions['denominator'] = 'tokens',
): Batch {
  const random = generator('advantages');
  return packBatch({
    trajectories,
    advantages: new Map(trajectories.map((t) => [t.id, Float64Array.from(t.steps, () => 4 * random() - 2)])),
    denominator,
    ...(constrained && { grammar: { grammar, vocabulary: VOCABULARY } }),
  });
}

async function stepOn(
  state: TrainState,
  batches: readonly Batch[],
  objective: Objective = POLICY,
  reference?: NamedTensors,
) {
  const input = {
    model: bigram,
    state,
    batches,
    objective,
    optimizer: OPTIMIZER,
    maxNorm: 1,
    ...(reference && { reference }),
  };
  const next = trainStep(input);
  return { state: next.state, statistics: await readStatistics(next.packed, input) };
}
const values = (named: NamedTensors) =>
  Object.fromEntries(Object.entries(named).map(([name, t]) => [name, [...t.dataSync()]]));

function expectClose(a: Record<string, number[]>, b: Record<string, number[]>, digits: number): void {
  expect(Object.keys(a)).toEqual(Object.keys(b));
  for (const [name, list] of Object.entries(a)) {
    for (const [i, value] of list.entries()) expect(value, `${name}[${i}]`).toBeCloseTo(b[name]![i]!, digits);
  }
}

describe('trainStep', () => {
  it.each([
    ['with a grammar', true],
    ['without a grammar', false],
  ])('case 13: on-policy at temperature 0.6 %s every ratio is 1 to 1e-6', async (_name, constrained) => {
    const state = initialState(fresh());
    const batch = pack(rollOut(state.weights, 40, constrained), constrained);
    const { statistics } = await stepOn(state, split(batch, 64), { ...POLICY, klCoefficient: 0 });
    expect(statistics.drift!.maxRatioDeviation).toBeLessThan(1e-6);
    expect(statistics.drift).toMatchObject({
      clipFraction: 0,
      meanRatio: expect.closeTo(1, 6),
      kl: expect.closeTo(0, 9),
    });
  });

  it('case 13: sees it when logprobs were recorded at another temperature or over another set of tokens', async () => {
    const state = initialState(fresh());
    const batch = pack(rollOut(state.weights, 40, true), true);
    const objective = { ...POLICY, klCoefficient: 0 };
    const hot = await stepOn(state, [batch], { ...objective, temperature: 1 });
    expect(hot.statistics.drift!.maxRatioDeviation).toBeGreaterThan(0.1);
    const unmasked = await stepOn(state, [pack(rollOut(state.weights, 40, true), false)], objective);
    expect(unmasked.statistics.drift!.maxRatioDeviation).toBeGreaterThan(0.1);
  });

  it('case 13: a batch that these very weights are said to have sampled, and did not, is an error', async () => {
    const state = initialState(fresh());
    const read = async (batch: Batch, onPolicy: boolean) => {
      const input = {
        ...{ model: bigram, state, batches: [batch], optimizer: OPTIMIZER, maxNorm: 1 },
        objective: { ...POLICY, klCoefficient: 0 },
      };
      const { state: next, packed } = trainStep(input);
      disposeState(next);
      return readStatistics(packed, { ...input, onPolicy });
    };
    const right = pack(rollOut(state.weights, 40, true), true);
    expect((await read(right, true)).drift!.kl).toBeCloseTo(0, 9);
    // As from a decoder whose logits were all alike.
    const level = { ...right, behaviour: right.behaviour.map(() => -Math.log(VOCABULARY)) };
    await expect(read(level, true)).rejects.toMatchObject({
      code: 'OFF_POLICY',
      message: expect.stringMatching(
        /diverge by \d+\.\d+ nats a token, farthest is episode \S+, segment 0, position \d+/,
      ),
    });
    expect((await read(level, false)).drift!.kl).toBeGreaterThan(0.01);
  });

  it('case 14: 100 tokens at loss 2.0 and 900 at 0.5 give 0.65, in one batch or two', async () => {
    // After token 1 comes 1 with e^−2, after token 2 comes 2 with e^−0.5.
    const table = new Float32Array(VOCABULARY ** 2);
    for (const [id, loss] of [
      [1, 2],
      [2, 0.5],
    ] as const) {
      const others = Math.log((1 - Math.exp(-loss)) / (VOCABULARY - 1));
      for (let j = 0; j < VOCABULARY; j++) table[id * VOCABULARY + j] = j === id ? -loss : others;
    }
    const state = initialState({ ...fresh(), table: tf.tensor2d(table, [VOCABULARY, VOCABULARY]) });
    const repeated = (id: number, times: number) =>
      judge(
        episode({ id: `${id}`, segments: [segment(`0${'1'.repeat(times)}`, { ids: Array(times + 1).fill(id) })] }),
        verdict(1),
        0,
      );
    const trajectories = [repeated(1, 100), repeated(2, 900)];
    const batch = packBatch({ trajectories, advantages: 'supervised', denominator: 'tokens' });
    const whole = await stepOn(state, [batch], SUPERVISED);
    const parts = split(batch, 904);
    expect(parts.map((part) => part.targets.length)).toEqual([900, 100]);
    const halves = await stepOn(state, parts, SUPERVISED);
    expect(whole.statistics.loss).toBeCloseTo(0.65, 4);
    expect(halves.statistics.loss).toBeCloseTo(0.65, 4);
    expect(halves.statistics.gradientNorm).toBeCloseTo(whole.statistics.gradientNorm, 6);
    expectClose(values(halves.state.weights), values(whole.state.weights), 5);
  });

  it('case 14: the step does not depend on how the batch is split', async () => {
    const state = initialState(fresh());
    const reference = fresh('reference');
    for (const denominator of ['tokens', 'episodes'] as const) {
      const batch = pack(rollOut(state.weights, 24, true), true, denominator);
      const whole = await stepOn(state, [batch], POLICY, reference);
      for (const maxTokens of [1, 40, 100, 1000]) {
        const parts = await stepOn(state, split(batch, maxTokens), POLICY, reference);
        expectClose(values(parts.state.moments.m), values(whole.state.moments.m), 6);
        expect(parts.statistics.loss).toBeCloseTo(whole.statistics.loss, 6);
        expect(parts.statistics.entropy).toBeCloseTo(whole.statistics.entropy, 6);
        expect(parts.statistics.referenceKl).toBeCloseTo(whole.statistics.referenceKl!, 6);
      }
    }
  });

  it('case 09: loss, entropy and KL are over the sampled tokens, however long the observations are', async () => {
    const state = initialState(fresh());
    const reference = fresh('reference');
    const talkative = (observation: number) =>
      judge(
        episode({
          segments: [
            segment(`0${'11'}${'0'.repeat(observation)}11`, {
              ids: [5, 1, 0, ...Array(observation - 1).fill(3), 5, 2, 0],
            }),
          ],
        }),
        verdict(1),
        0,
      );
    const short = await stepOn(state, [pack([talkative(1)])], POLICY, reference);
    const long = await stepOn(state, [pack([talkative(50)])], POLICY, reference);
    expect(long.statistics).toEqual(short.statistics);
    expect(short.statistics.referenceKl).toBeGreaterThan(0.01);
    expect(short.statistics.entropy).toBeGreaterThan(0.01);
    expect(values(long.state.weights)).toEqual(values(short.state.weights));
  });

  it('case 25: a head that the loss does not use stays as it was, moments included', async () => {
    let state = initialState(fresh());
    const before = values(state.weights);
    for (let i = 0; i < 3; i++)
      ({ state } = await stepOn(state, [pack(rollOut(state.weights, 8, true))], { ...POLICY, klCoefficient: 0 }));
    expect(values(state.weights)['value.head']).toEqual(before['value.head']);
    expect(values(state.moments.v)['value.head']).toEqual([0, 0, 0, 0]);
    expect(state.moments.updates).toEqual({ 'value.head': 0, table: 3, bias: 3 });
    expect(values(state.weights).table).not.toEqual(before.table);
  });

  it('adds entropy bonus and KL penalty to the loss with their coefficients, by the batch’s denominator', async () => {
    const state = initialState(fresh());
    const reference = fresh('reference');
    const batch = pack(rollOut(state.weights, 12, true), true, 'episodes');
    const bare = { ...POLICY, entropyCoefficient: 0, klCoefficient: 0 };
    const plain = (await stepOn(state, [batch], bare, reference)).statistics;
    const both = (await stepOn(state, [batch], { ...bare, entropyCoefficient: 0.3, klCoefficient: 0.7 }, reference))
      .statistics;
    const added = ((0.7 * plain.referenceKl! - 0.3 * plain.entropy) * plain.tokens) / batch.denominator;
    expect(both.loss).toBeCloseTo(plain.loss + added, 4);
    expect(Math.abs(added)).toBeGreaterThan(0.1);
  });

  it('makes what was rewarded more probable: the bandit’s better arm', async () => {
    let state = initialState({ ...fresh(), table: tf.zeros([VOCABULARY, VOCABULARY]) });
    const arm = (id: number) =>
      judge(episode({ id: `${id}`, segments: [segment('01', { ids: [5, id] })] }), verdict(1), 0);
    const uniform = Math.log(1 / VOCABULARY);
    const trajectories = [1, 2].map((id) => {
      const t = arm(id);
      return { ...t, segments: t.segments.map((s) => ({ ...s, logprobs: [null, uniform] })) };
    });
    const advantages = new Map([
      ['1', Float64Array.of(1)],
      ['2', Float64Array.of(-1)],
    ]);
    const batch = packBatch({ trajectories, advantages, denominator: 'episodes' });
    ({ state } = await stepOn(state, [batch], { ...POLICY, temperature: 1, klCoefficient: 0, entropyCoefficient: 0 }));
    const row = values(state.weights).table!.slice(5 * VOCABULARY);
    const bias = values(state.weights).bias!;
    expect(row[1]! + bias[1]!).toBeGreaterThan(row[0]! + bias[0]!);
    expect(row[2]! + bias[2]!).toBeLessThan(row[0]! + bias[0]!);
  });

  it('leaves no tensor behind but the new state', async () => {
    let state = initialState(fresh());
    const reference = fresh('reference');
    const parts = split(pack(rollOut(state.weights, 12, true)), 40);
    expect(parts.length).toBeGreaterThan(1);
    const before = tf.memory().numTensors;
    for (let i = 0; i < 3; i++) {
      const next = await stepOn(state, parts, POLICY, reference);
      disposeState(state);
      state = next.state;
      expect(tf.memory().numTensors).toBe(before);
    }
  });

  it('is a function of its arguments: the same step twice gives the same bits', async () => {
    const state = initialState(fresh());
    const parts = split(pack(rollOut(state.weights, 12, true)), 40);
    const [a, b] = [await stepOn(state, parts, POLICY, fresh('r')), await stepOn(state, parts, POLICY, fresh('r'))];
    expect(a.statistics).toEqual(b.statistics);
    expect(values(a.state.weights)).toEqual(values(b.state.weights));
  });

  it('asks for a reference policy where the objective needs one', () => {
    const state = initialState(fresh());
    const input = { model: bigram, state, batches: [pack(rollOut(state.weights, 2, true))], objective: POLICY };
    expect(() => trainStep({ ...input, optimizer: OPTIMIZER, maxNorm: 1 })).toThrow('expected a reference policy');
  });

  it('gives on wasm what it gives on cpu', async () => {
    const run = async () => {
      const state = initialState(fresh());
      const parts = split(pack(rollOut(state.weights, 24, true)), 100);
      const { state: next, statistics } = await stepOn(state, parts, POLICY, fresh('reference'));
      return { weights: values(next.weights), m: values(next.moments.m), statistics };
    };
    const cpu = await run();
    await selectBackend('wasm');
    const wasm = await run();
    expectClose(wasm.m, cpu.m, 6);
    expectClose(wasm.weights, cpu.weights, 4);
    expect(wasm.statistics.loss).toBeCloseTo(cpu.statistics.loss, 6);
    expect(wasm.statistics.drift!.maxRatioDeviation).toBeLessThan(2e-5);
  });
});

describe('readStatistics', () => {
  const off: Objective = { ...POLICY, klCoefficient: 0, entropyCoefficient: 0, temperature: 1 };

  it('measures the drift from the behaviour policy as worked out by hand', async () => {
    // Six equal logits: p = 1/6. Recorded at 1/3, 1/6 and 1/12: ratios ½, 1 and 2; advantages −1, 1, 1 lose the first and the last to the clip.
    const state = initialState({ ...fresh(), table: tf.zeros([VOCABULARY, VOCABULARY]) });
    const logprobs = [null, Math.log(1 / 3), null, Math.log(1 / 6), null, Math.log(1 / 12)];
    const made = judge(
      episode({ segments: [segment('010101', { ids: [5, 1, 5, 2, 5, 3], logprobs })] }),
      verdict(1),
      0,
    );
    const advantages = new Map([['e', Float64Array.of(-1, 1, 1)]]);
    const batch = packBatch({ trajectories: [made], advantages, denominator: 'tokens' });
    const { statistics } = await stepOn(state, [batch], off);
    expect(statistics.tokens).toBe(3);
    expect(statistics.loss).toBeCloseTo(-(-0.8 + 1 + 1.2) / 3, 6);
    expect(statistics.entropy).toBeCloseTo(Math.log(6), 6);
    expect(statistics.referenceKl).toBeNull();
    expect(statistics.drift).toEqual({
      meanRatio: expect.closeTo(3.5 / 3, 5),
      maxRatioDeviation: expect.closeTo(1, 5),
      clipFraction: 2 / 3,
      kl: expect.closeTo((0.5 - 1 + Math.LN2 + 2 - 1 - Math.LN2) / 3, 5),
    });
  });

  it('reports no drift for a supervised step: nothing was sampled from this policy', async () => {
    const state = initialState(fresh());
    const batch = packBatch({
      trajectories: rollOut(state.weights, 4, false),
      advantages: 'supervised',
      denominator: 'tokens',
    });
    expect((await stepOn(state, [batch], SUPERVISED)).statistics.drift).toBeNull();
  });

  it('case 10: a NaN on a sampled token stops with episode and position', async () => {
    const weights = fresh();
    const table = Float32Array.from(weights.table!.dataSync());
    table[3 * VOCABULARY + 1] = Number.NaN;
    const state = initialState({ ...weights, table: tf.tensor2d(table, [VOCABULARY, VOCABULARY]) });
    const made = (id: string, ids: readonly number[]) =>
      judge(episode({ id, segments: [segment('0011', { ids })] }), verdict(1), 0);
    const batch = pack([made('good', [5, 5, 1, 2]), made('bad', [5, 5, 3, 1])], false);
    await expect(stepOn(state, split(batch, 8), off)).rejects.toMatchObject({
      code: 'NONFINITE_LOGPROB',
      message: 'episode bad, segment 0, position 3: expected a finite logprob of the sampled token 1, found NaN',
    });
    // The same NaN in a row that only an observation reads is never met.
    const clean = pack([made('good', [3, 5, 1, 2])], false);
    expect((await stepOn(state, [clean], off)).statistics.loss).toEqual(expect.any(Number));
  });

  it('stops where the loss is not finite though every logprob is', async () => {
    const state = initialState(fresh());
    const far = judge(episode({ segments: [segment('01', { ids: [5, 1], logprobs: [null, -200] })] }), verdict(1), 0);
    const batch = packBatch({
      trajectories: [far],
      advantages: new Map([['e', Float64Array.of(-1)]]),
      denominator: 'tokens',
    });
    await expect(stepOn(state, [batch], off)).rejects.toMatchObject({
      code: 'NONFINITE_LOSS',
      message: expect.stringContaining('farthest from its recorded one is episode e, segment 0, position 1, ratio'),
    });
  });
});
