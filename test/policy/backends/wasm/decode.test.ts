import * as tf from '@tensorflow/tfjs';
import fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import { selectBackend } from '../../../../src/policy/backends/select.ts';
import type { TransformerConfig } from '../../../../src/policy/transformer/config.ts';
import { DecodeBatch, Decoder } from '../../../../src/policy/transformer/decoder.ts';
import { transformer } from '../../../../src/policy/transformer/model.ts';
import { generator } from '../../../../src/records/random.ts';

const CONFIG: TransformerConfig = {
  vocabulary: 30,
  layers: 2,
  width: 24,
  heads: 4,
  kvHeads: 2,
  headWidth: 8,
  hidden: 36,
  ropeBase: 10000,
  epsilon: 1e-5,
  tied: true,
};

let decoder: Decoder;
beforeAll(async () => {
  await selectBackend('wasm');
  const weights = transformer(CONFIG).init(generator('decode'));
  decoder = new Decoder(
    CONFIG,
    Object.fromEntries(Object.entries(weights).map(([name, w]) => [name, tf.tensor(w.data, [...w.shape])])),
  );
});

/** Logits after each chunk of `own`, decoded as row 0 beside `others`, of which `leave` go after each step. */
async function logitsBeside(
  own: readonly (readonly number[])[],
  others: readonly (readonly (readonly number[])[])[],
  leave: boolean,
): Promise<Float32Array[]> {
  const batch = new DecodeBatch(decoder, [null, ...others.map(() => null)]);
  let rows = [own, ...others];
  const out: Float32Array[] = [];
  for (let step = 0; step < own.length; step++) {
    const logits = await batch.feed(rows.map((row) => row[step] ?? []));
    out.push(logits.slice(0, CONFIG.vocabulary));
    if (leave && rows.length > 1) {
      batch.keep([...rows.keys()].slice(0, -1));
      rows = rows.slice(0, -1);
    }
  }
  batch.end();
  return out;
}

const chunk = fc.array(fc.nat(CONFIG.vocabulary - 1), { minLength: 1, maxLength: 6 });
const episode = fc.array(chunk, { minLength: 1, maxLength: 4 });

// Continuous batching relies on it.
test('what an episode is given depends to the bit on its own tokens, however many are decoded beside it', async () => {
  await fc.assert(
    fc.asyncProperty(episode, fc.array(episode, { maxLength: 7 }), fc.boolean(), async (own, others, leave) => {
      expect(await logitsBeside(own, others, leave)).toEqual(await logitsBeside(own, [], false));
    }),
    { numRuns: 40, seed: 4 },
  );
}, 60_000);

test('and not on how its tokens are cut into steps', async () => {
  await fc.assert(
    fc.asyncProperty(episode, async (own) => {
      const oneByOne = await logitsBeside(
        own.flat().map((id) => [id]),
        [],
        false,
      );
      expect((await logitsBeside(own, [], false)).at(-1)).toEqual(oneByOne.at(-1));
    }),
    { numRuns: 20, seed: 4 },
  );
}, 60_000);
