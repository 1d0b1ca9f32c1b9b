import * as tf from '@tensorflow/tfjs';
import { beforeAll, describe, expect, test } from 'vitest';
import { selectBackend } from '../../../src/policy/backends/select.ts';
import { TransformerPolicy, type TransformerPolicyOptions } from '../../../src/policy/generate.ts';
import type { Grammar } from '../../../src/policy/grammar/index.ts';
import type { NamedTensors } from '../../../src/policy/model.ts';
import { sampleToken } from '../../../src/policy/sampling.ts';
import type { TokenRequest } from '../../../src/policy/token-policy.ts';
import { DecodeBatch, Decoder } from '../../../src/policy/transformer/decoder.ts';
import { ReplayedDecoder } from '../../../src/policy/transformer/replayed-decoder.ts';
import { generator } from '../../../src/records/random.ts';
import { NATIVE, NATIVE_BACKEND } from '../backends/native.ts';
import { SMALL, tensors, wildWeights } from '../transformer/fixtures.ts';
import { END, GRAMMAR, requests } from './fixtures.ts';

const V = SMALL.vocabulary;

describe.skipIf(!NATIVE)('a replayed policy', () => {
  let weights: NamedTensors = {};
  beforeAll(async () => {
    await selectBackend(NATIVE_BACKEND);
    weights = tensors(wildWeights(SMALL, 'generate', 0.35));
  });

  function pair(change: Partial<TransformerPolicyOptions> = {}) {
    const options = {
      config: SMALL,
      weights,
      version: 3,
      grammar: GRAMMAR,
      tokenizer: { size: V, end: END },
      temperature: 0.6,
      greedy: false,
      ...change,
    };
    const { config, grammar, temperature, greedy } = options;
    const replay = new ReplayedDecoder({ config, grammar, temperature: greedy ? null : temperature });
    return { eager: new TransformerPolicy(options), replayed: new TransformerPolicy({ ...options, replay }), replay };
  }

  async function compare(
    { eager, replayed }: ReturnType<typeof pair>,
    asked: readonly TokenRequest[],
  ): Promise<number> {
    const expected = await eager.generate(asked);
    const found = await replayed.generate(asked);
    expect(found.map(({ ids, cutOff }) => ({ ids, cutOff }))).toEqual(
      expected.map(({ ids, cutOff }) => ({ ids, cutOff })),
    );
    for (const [i, { logprobs }] of found.entries()) {
      expect(logprobs === null).toBe(expected[i]!.logprobs === null);
      for (const [n, logprob] of (logprobs ?? []).entries()) {
        expect(Math.abs(logprob - expected[i]!.logprobs![n]!)).toBeLessThan(1e-5);
      }
    }
    return found.reduce((sum, { ids }) => sum + ids.length, 0);
  }

  test.each([
    ['under a grammar', {}],
    ['without one', { grammar: null }],
    ['greedily', { greedy: true }],
    ['at temperature 2', { temperature: 2 }],
  ] as const)(
    'writes the tokens and logprobs of the eager one %s, as episodes come, go on and go',
    async (_, change) => {
      const both = pair(change);
      let tokens = 0;
      tokens += await compare(both, requests(0, [0, 1, 2, 3, 4, 5, 6]));
      tokens += await compare(both, requests(1, [6, 4, 2, 0]));
      for (const p of [both.eager, both.replayed]) p.release(['e1', 'e3', 'e4']);
      // New ones in the freed slots, one that only goes on, and more than there were.
      tokens += await compare(both, requests(2, [7, 5, 8, 9, 10, 11, 12, 2]));
      // Beyond 32 columns: the caches are carried over.
      for (let round = 3; round < 9; round++) tokens += await compare(both, requests(round, [2, 5, 11]));
      expect(tokens).toBeGreaterThan(60);
      both.replay.dispose();
    },
  );

  test('new weights are decoded with at once, and nothing is recorded again for the same shapes', async () => {
    const both = pair();
    const round = async (n: number) => {
      await compare(both, requests(n, [0, 1, 2]));
      for (const p of [both.eager, both.replayed]) p.release(['e0', 'e1', 'e2']);
    };
    for (const n of [0, 1, 2, 3, 4, 5]) await round(n);
    const { recordings } = both.replay;
    expect(recordings).toBeLessThanOrEqual(8);
    const other = tensors(wildWeights(SMALL, 'other', 0.4));
    for (const p of [both.eager, both.replayed]) p.setWeights(other, 4);
    for (const n of [0, 1, 2]) await round(n);
    expect(both.replay.recordings).toBe(recordings);
    const { fed, given } = both.replay.tokens;
    expect(fed).toBeGreaterThan(100);
    expect(given).toBeGreaterThan(fed);
    expect(given).toBeLessThan(2 * fed);
    tf.dispose(other as tf.NamedTensorMap);
    both.replay.dispose();
  });

  test('rows that join at different ticks get what they get eagerly, in the same ticks', async () => {
    const both = pair();
    const asked = requests(0, [0, 1, 2, 3, 4, 5, 6, 7, 8], 30);
    const played = async (policy: TransformerPolicy) => {
      const log: { tick: number; episodeId: string; ids: readonly number[] }[] = [];
      for (let tick = 0; log.length < asked.length; tick++) {
        const joining = tick % 2 === 0 ? asked.slice(tick, tick + 2) : [];
        for (const { episodeId, reply } of await policy.tick(joining)) log.push({ tick, episodeId, ids: reply.ids });
      }
      return log;
    };
    const expected = await played(both.eager);
    expect(new Set(expected.map(({ tick }) => tick)).size).toBeGreaterThan(3);
    expect(await played(both.replayed)).toEqual(expected);
    both.replay.dispose();
  });

  test('another policy cannot take the decoder while an action is being written', async () => {
    const first = pair({ grammar: null });
    const second = new TransformerPolicy({
      config: SMALL,
      weights,
      version: 1,
      grammar: null,
      tokenizer: { size: V, end: END },
      temperature: 0.6,
      greedy: false,
      replay: first.replay,
    });
    await first.replayed.tick(requests(0, [0, 1, 2, 3, 4], 90));
    await second.generate(requests(0, [9]));
    await expect(first.replayed.tick([])).rejects.toMatchObject({ code: 'POLICY_BUSY' });
    first.replay.dispose();
  });

  test('two policies take turns with one decoder', async () => {
    const first = pair();
    const other = tensors(wildWeights(SMALL, 'other', 0.4));
    const options = {
      config: SMALL,
      weights: other,
      version: 1,
      grammar: GRAMMAR,
      tokenizer: { size: V, end: END },
      temperature: 0.6,
      greedy: false,
    };
    const second = {
      eager: new TransformerPolicy(options),
      replayed: new TransformerPolicy({ ...options, replay: first.replay }),
      replay: first.replay,
    };
    for (let round = 0; round < 3; round++) {
      await compare(first, requests(round, [0, 1, 2]));
      await compare(second, requests(round, [0, 3]));
    }
    tf.dispose(other as tf.NamedTensorMap);
    first.replay.dispose();
  });

  test('leaves no tensor behind, and none between calls', async () => {
    const { replayed, replay } = pair();
    const before = tf.memory().numTensors;
    await replayed.generate(requests(0, [0, 1, 2]));
    for (let round = 1; round < 4; round++) await replayed.generate(requests(round, [0, 1, 2], 3));
    expect(tf.memory().numTensors).toBe(before);
    replay.dispose();
    expect(tf.memory().numTensors).toBe(before);
  });

  test('weights that overflow are an error that names the episode', async () => {
    const huge = tf.tidy(() => Object.fromEntries(Object.entries(weights).map(([name, w]) => [name, tf.mul(w, 1e30)])));
    const { replayed, replay } = pair({ weights: huge });
    await expect(replayed.generate(requests(0, [0]))).rejects.toMatchObject({
      code: 'BAD_LOGIT',
      message: expect.stringContaining('e0'),
    });
    tf.dispose(huge as tf.NamedTensorMap);
    replay.dispose();
  });

  test('draws as sampleToken does from the same logits, at every uniform that is not within rounding of a boundary', async () => {
    const grammar: Grammar = { start: 0, allowed: () => Int32Array.from([1, 2, 5, 6, 9]), next: () => 0 };
    const decoder = new Decoder(SMALL, weights);
    const batch = new DecodeBatch(decoder, [null]);
    const logits = await batch.feed([[3, 4]]);
    batch.end();
    decoder.dispose();
    const replay = new ReplayedDecoder({ config: SMALL, grammar, temperature: 0.9 });
    replay.load({}, weights);
    const random = generator('uniforms');
    const uniforms = [0, 2 ** -40, 0.5, 1 - 2 ** -53, ...Array.from({ length: 200 }, () => random())];
    replay.reserve(uniforms.length, 3);
    const rows = uniforms.map((uniform) => ({ slot: replay.open(), tokens: [3, 4], state: 0, uniform }));
    const allowed = grammar.allowed(0);
    const drawn = replay.step(rows);
    let boundary = 0;
    for (const [i, uniform] of uniforms.entries()) {
      const expected = sampleToken(logits, 0, allowed, 0.9, uniform);
      if (drawn[i]!.id !== expected.id) {
        const near = [uniform - 1e-5, uniform + 1e-5].map(
          (u) => sampleToken(logits, 0, allowed, 0.9, Math.max(0, u)).id,
        );
        expect(near).toContain(drawn[i]!.id);
        boundary++;
      } else {
        expect(Math.abs(drawn[i]!.logprob - expected.logprob)).toBeLessThan(1e-5);
      }
    }
    expect(boundary).toBeLessThan(3);
    expect(new Set(drawn.map(({ id }) => id)).size).toBe(allowed.length);
    replay.dispose();
  });
});
