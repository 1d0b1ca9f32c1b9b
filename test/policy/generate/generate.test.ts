import * as tf from '@tensorflow/tfjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TransformerPolicy, type TransformerPolicyOptions } from '../../../src/policy/generate.ts';
import type { Grammar } from '../../../src/policy/grammar/index.ts';
import type { NamedTensors } from '../../../src/policy/model.ts';
import type { TokenReply, TokenRequest } from '../../../src/policy/token-policy.ts';
import { transformer } from '../../../src/policy/transformer/model.ts';
import { generator } from '../../../src/records/random.ts';
import { BACKENDS, SMALL, tensors, tokenRows, use, wildWeights } from '../transformer/fixtures.ts';
import { END, GRAMMAR, requests } from './fixtures.ts';

const V = SMALL.vocabulary;
const TOKENIZER = { size: V, end: END };
const WEIGHTS = wildWeights(SMALL, 'generate', 0.35);

/** What an episode has said, and where the replies stand in it. */
interface Told {
  ids: number[];
  sampled: { at: number; id: number; logprob: number; first: boolean }[];
}

function tell(told: Map<string, Told>, asked: readonly TokenRequest[], replies: readonly TokenReply[]): void {
  for (const [i, { episodeId, newIds }] of asked.entries()) {
    const one = told.get(episodeId) ?? { ids: [], sampled: [] };
    told.set(episodeId, one);
    one.ids.push(...newIds);
    for (const [j, id] of replies[i]!.ids.entries()) {
      one.sampled.push({ at: one.ids.length, id, logprob: replies[i]!.logprobs?.[j] ?? Number.NaN, first: j === 0 });
      one.ids.push(id);
    }
  }
}

describe.each(BACKENDS)('on $backend the transformer policy', ({ backend, tolerance }) => {
  let before = 0;
  let weights: NamedTensors = {};
  beforeEach(async () => {
    await use(backend);
    before = tf.memory().numTensors;
    weights = tensors(WEIGHTS);
  });
  afterEach(() => {
    tf.dispose(weights as tf.NamedTensorMap);
    expect(tf.memory().numTensors).toBe(before);
  });

  function policy(change: Partial<TransformerPolicyOptions> = {}): TransformerPolicy {
    return new TransformerPolicy({
      config: SMALL,
      weights,
      version: 3,
      grammar: GRAMMAR,
      tokenizer: TOKENIZER,
      temperature: 0.6,
      greedy: false,
      ...change,
    });
  }

  /** log-softmax of the full pass's logits / T over what the grammar allows, at each sampled token. */
  function fullLogprobs(told: Told, grammar: Grammar | null, temperature: number): number[] {
    const flat = tf.tidy(() =>
      transformer(SMALL)
        .logits(weights, tokenRows([told.ids]))
        .dataSync(),
    );
    let state = 0;
    return told.sampled.map(({ at, id, first }) => {
      if (first) state = 0;
      const allowed = grammar === null ? Array.from({ length: V }, (_, i) => i) : [...grammar.allowed(state)];
      expect(allowed).toContain(id);
      if (id !== END && grammar !== null) state = grammar.next(state, id);
      const scaled = (token: number) => flat[(at - 1) * V + token]! / temperature;
      const largest = Math.max(...allowed.map(scaled));
      const total = allowed.reduce((sum, token) => sum + Math.exp(scaled(token) - largest), 0);
      return scaled(id) - largest - Math.log(total);
    });
  }

  it.each([
    ['under a grammar', GRAMMAR],
    ['without a grammar', null],
  ])('case 13: records logprobs that the full pass gives again at temperature 0.6, %s', async (_, grammar) => {
    const acting = policy({ grammar });
    const told = new Map<string, Told>();
    // Rows come and go, one sits a round out, and one joins late.
    for (const [round, episodes] of [
      [0, 1, 2, 3, 4, 5],
      [5, 1, 0, 3],
      [0, 6, 1, 2, 5],
    ].entries()) {
      const asked = requests(round, episodes);
      tell(told, asked, await acting.generate(asked));
    }
    expect(told.size).toBe(7);
    let nontrivial = 0;
    for (const one of told.values()) {
      for (const [i, logprob] of fullLogprobs(one, grammar, 0.6).entries()) {
        const ratio = Math.exp(logprob - one.sampled[i]!.logprob);
        expect(Math.abs(ratio - 1)).toBeLessThan(tolerance);
        if (logprob < -0.1) nontrivial++;
      }
    }
    expect(nontrivial).toBeGreaterThan(20);
    acting.release([...told.keys()]);
  });

  it('case 24: gives the same seed the same tokens again, to the bit', async () => {
    const runs = [];
    for (let run = 0; run < 2; run++) {
      const acting = policy();
      const replies = [];
      for (const round of [0, 1]) replies.push(await acting.generate(requests(round, [0, 1, 2, 3, 4])));
      acting.release(['e0', 'e1', 'e2', 'e3', 'e4']);
      runs.push(replies);
    }
    expect(runs[1]).toEqual(runs[0]);
    expect(new Set(runs[0]![0]!.map((reply) => reply.ids.join())).size).toBeGreaterThan(1);
  });

  it('draws from the row’s own generator, one uniform a token, forced ones included', async () => {
    const acting = policy({ temperature: 1e9 });
    const asked = requests(0, [0, 1, 2]);
    const replies = await acting.generate(asked);
    for (const [i, { ids, logprobs }] of replies.entries()) {
      const random = generator(asked[i]!.seed);
      let state = 0;
      for (const [j, id] of ids.entries()) {
        // So hot that every allowed token is equally likely.
        const allowed = GRAMMAR.allowed(state);
        expect(id).toBe(allowed[Math.floor(random() * allowed.length)]);
        expect(logprobs![j]).toBeCloseTo(-Math.log(allowed.length), 6);
        if (id !== END) state = GRAMMAR.next(state, id);
      }
    }
    acting.release(['e0', 'e1', 'e2']);
  });

  it('takes the most likely allowed token where it is greedy, and then gives no logprobs', async () => {
    const acting = policy({ greedy: true });
    const asked = requests(0, [0, 1, 2, 3]);
    const replies = await acting.generate(asked);
    const told = new Map<string, Told>();
    tell(told, asked, replies);
    for (const one of told.values()) {
      const flat = tf.tidy(() =>
        transformer(SMALL)
          .logits(weights, tokenRows([one.ids]))
          .dataSync(),
      );
      let state = 0;
      for (const { at, id } of one.sampled) {
        const row = flat.subarray((at - 1) * V, at * V);
        const best = Math.max(...Array.from(GRAMMAR.allowed(state), (token) => row[token]!));
        expect(row[id]).toBe(best);
        if (id !== END) state = GRAMMAR.next(state, id);
      }
    }
    expect(replies.map((reply) => reply.logprobs)).toEqual([null, null, null, null]);
    acting.release(['e0', 'e1', 'e2', 'e3']);
  });

  it('case 16: cuts an action off at its limit and says so; an end token on the limit is no cut', async () => {
    const acting = policy({ temperature: 5 });
    const long = await acting.generate(requests(0, [0, 1, 2, 3, 4, 5, 6, 7], 60));
    acting.release(['e0', 'e1', 'e2', 'e3', 'e4', 'e5', 'e6', 'e7']);
    for (const [e, whole] of long.entries()) {
      expect(whole.cutOff).toBe(false);
      expect(whole.ids.at(-1)).toBe(END);
      for (const maxTokens of [1, 3, whole.ids.length - 1, whole.ids.length]) {
        const [reply] = await acting.generate(requests(0, [e], maxTokens));
        expect(reply!.ids).toEqual(whole.ids.slice(0, maxTokens));
        expect(reply!.cutOff).toBe(maxTokens < whole.ids.length);
        expect(reply!.logprobs!.length).toBe(reply!.ids.length);
        acting.release([`e${e}`]);
      }
    }
  });

  it('answers under new weights as if they had been there from the start', async () => {
    const other = tensors(wildWeights(SMALL, 'other', 0.35));
    const switched = policy({ greedy: true });
    const context = await switched.generate(requests(0, [0, 1, 2]));
    switched.setWeights(other, 4);
    expect(switched.version).toBe(4);
    const later = await switched.generate(requests(1, [0, 1, 2]));
    switched.release(['e0', 'e1', 'e2']);
    const fresh = policy({ weights: other, greedy: true });
    const whole = requests(0, [0, 1, 2]).map((first, i) => ({
      ...first,
      newIds: [...first.newIds, ...context[i]!.ids, ...requests(1, [0, 1, 2])[i]!.newIds],
    }));
    expect(await fresh.generate(whole)).toEqual(later);
    fresh.release(['e0', 'e1', 'e2']);
    tf.dispose(other as tf.NamedTensorMap);
  });

  it('keeps what it needs when its owner disposes the weights between rounds', async () => {
    const mine = tensors(WEIGHTS);
    const acting = policy({ weights: mine });
    const expected = policy();
    expect(await acting.generate(requests(0, [0, 1]))).toEqual(await expected.generate(requests(0, [0, 1])));
    tf.dispose(mine as tf.NamedTensorMap);
    expect(await acting.generate(requests(1, [0, 1]))).toEqual(await expected.generate(requests(1, [0, 1])));
    acting.release(['e0', 'e1']);
    expected.release(['e0', 'e1']);
  });

  it('refuses a second call at a time, and a batch that makes no sense, and goes on after both', async () => {
    const acting = policy();
    const running = acting.generate(requests(0, [0]));
    await expect(acting.generate(requests(0, [1]))).rejects.toThrow(/one call at a time/);
    expect(() => acting.setWeights(weights, 9)).toThrow(/one call at a time/);
    await running;
    const [one] = requests(1, [0]);
    await expect(acting.generate([one!, one!])).rejects.toThrow(/episode e0: expected one request for each episode/);
    await expect(acting.generate([{ ...one!, maxTokens: 0 }])).rejects.toThrow(/maxTokens > 0, found 0/);
    await expect(acting.generate([{ ...one!, newIds: [V] }])).rejects.toThrow(/token ids in \[0, 11\), found 11/);
    await expect(acting.generate([{ ...one!, episodeId: 'new', newIds: [] }])).rejects.toThrow(/at least one token/);
    expect((await acting.generate([{ ...one!, newIds: [] }])).length).toBe(1);
    expect(await acting.generate([])).toEqual([]);
    acting.release(['e0', 'unknown']);
  });

  it('keeps nothing of an action that is given up between two ticks, however often, while others are written on', async () => {
    const acting = policy({ temperature: 5 });
    const [kept] = requests(0, [9]);
    await acting.generate([kept!]);
    const left: number[] = [];
    for (let round = 0; round < 3; round++) {
      await acting.tick(requests(0, [0, 1, 2, 3], 60));
      acting.release(['e1']);
      await acting.tick([]);
      // One after the other, down to a batch in which nobody is left to feed.
      acting.release(['e0', 'e2']);
      await acting.tick([]);
      acting.release(['e3']);
      expect(await acting.tick([])).toEqual([]);
      left.push(tf.memory().numTensors);
    }
    expect(left).toEqual([left[0], left[0], left[0]]);
    acting.release(['e9']);
  });

  it('keeps nothing of one that is released in the tick that it joins in', async () => {
    const acting = policy({ temperature: 5 });
    const [first] = requests(0, [0], 3);
    const joining = acting.tick([first!, ...requests(0, [1, 2, 3], 60)]);
    acting.release(['e0']);
    await joining;
    // Past the end that its action would have had.
    for (let tick = 0; tick < 3; tick++) await acting.tick([]);
    acting.release(['e1', 'e2', 'e3']);
  });

  it('releases a batch that fails on overflow, and one that is released while it decodes', async () => {
    const broken = Object.fromEntries(Object.entries(weights).map(([name, w]) => [name, tf.fill(w.shape, Number.NaN)]));
    const acting = policy({ weights: broken });
    await expect(acting.generate(requests(0, [0, 1]))).rejects.toMatchObject({ code: 'BAD_LOGIT' });
    expect(tf.memory().numTensors).toBe(before + 2 * Object.keys(weights).length);
    tf.dispose(broken);
    const sound = policy();
    const running = sound.generate(requests(0, [0, 1, 2, 3]));
    sound.release(['e0', 'e1', 'e2', 'e3']);
    await expect(running).rejects.toMatchObject({ code: 'EPISODE_RELEASED' });
  });

  it('refuses a model whose ids are not the tokenizer’s', () => {
    expect(() => policy({ tokenizer: { size: V + 1, end: END } })).toThrow(/the tokenizer's 12 ids, found 11/);
    expect(() => policy({ tokenizer: { size: V - 1, end: 9 }, grammar: null })).toThrow(/10 ids, found 11/);
  });
});
