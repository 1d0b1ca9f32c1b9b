import * as tf from '@tensorflow/tfjs';
import { describe, expect, it } from 'vitest';
import { type BackendName, selectBackend } from '../../../src/policy/backends/select.ts';
import { TransformerPolicy } from '../../../src/policy/generate.ts';
import type { TokenReply } from '../../../src/policy/token-policy.ts';
import { NATIVE, NATIVE_BACKEND } from '../backends/native.ts';
import { SMALL, tensors, wildWeights } from '../transformer/fixtures.ts';

const V = SMALL.vocabulary;
const asked = Array.from({ length: 24 }, (_, e) => ({
  episodeId: `e${e}`,
  newIds: Array.from({ length: 2 + ((e * 5) % 7) }, (_, i) => (e + 2 * i) % V),
  maxTokens: 3 + ((e * 7) % 40),
  seed: `seed/${e}`,
}));

const backends: readonly BackendName[] = NATIVE ? ['cpu', 'wasm', NATIVE_BACKEND] : ['cpu', 'wasm'];

describe.each(backends)('on %s what a row gets', (backend) => {
  it('case 24: is, alone, in a full batch and in one that it joins late, the same tokens, and the same logprobs to rounding', async () => {
    await selectBackend(backend);
    const weights = tensors(wildWeights(SMALL, 'alone', 0.35));
    const policy = () =>
      new TransformerPolicy({
        config: SMALL,
        weights,
        version: 0,
        grammar: null,
        tokenizer: { size: V, end: V - 1 },
        temperature: 1,
        greedy: false,
      });
    const alone: TokenReply[] = [];
    for (const request of asked) alone.push(...(await policy().generate([request])));

    const together = await policy().generate(asked);
    const late = new Map<string, TokenReply>();
    const acting = policy();
    for (let tick = 0; late.size < asked.length; tick++) {
      const joining = tick % 3 === 0 ? asked.slice(tick, tick + 3) : [];
      for (const { episodeId, reply } of await acting.tick(joining)) late.set(episodeId, reply);
    }
    let apart = 0;
    for (const [e, { episodeId }] of asked.entries()) {
      for (const found of [together[e]!, late.get(episodeId)!]) {
        expect(found.ids).toEqual(alone[e]!.ids);
        for (const [i, logprob] of found.logprobs!.entries()) {
          apart = Math.max(apart, Math.abs(logprob - alone[e]!.logprobs![i]!));
        }
      }
    }
    // cpu and our wasm kernels sum in an order that nothing beside a row changes; TensorFlow's do not.
    if (backend === 'cpu' || backend === 'wasm') expect(apart).toBe(0);
    else expect(apart).toBeLessThan(2e-5);
    tf.dispose(weights as tf.NamedTensorMap);
  });
});
