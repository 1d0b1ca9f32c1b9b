/** @module Batches made from a few numbers, and the objectives that replay is held to. */
import { generator } from '../../src/records/random.ts';
import { type Batch, FORBIDDEN, layOut, type Row } from '../../src/train/batch.ts';
import type { Objective } from '../../src/train/part.ts';

/** Rows of these lengths; about half of their tokens are scored, under masks that allow their target and some others. */
export function raggedBatch(of: {
  readonly lengths: readonly number[];
  readonly vocabulary: number;
  /** 0: no grammar. */
  readonly states: number;
  readonly seed: string;
}): Batch {
  const random = generator(of.seed);
  const below = (n: number) => Math.floor(random() * n);
  const rows = of.lengths.map((length, b): Row => {
    const ids = Array.from({ length }, () => below(of.vocabulary));
    const sampled = Array.from({ length: length - 1 }, (_, i) => i + 1)
      .filter((at) => at === length - 1 || random() < 0.5)
      .map((at) => ({
        at,
        behaviour: -2 * random(),
        advantage: 2 * random() - 1,
        // A state that allows the token: states allow the ids that are equal to them modulo their number, and every id below 3.
        mask: of.states === 0 ? 0 : (ids[at] ?? 0) < 3 ? below(of.states) : (ids[at] ?? 0) % of.states,
      }));
    return { episode: `e${b}`, segment: 0, ids, sampled };
  });
  const masks = new Float32Array(of.states * of.vocabulary);
  for (let s = 0; s < of.states; s++) {
    for (let id = 3; id < of.vocabulary; id++) if (id % of.states !== s) masks[s * of.vocabulary + id] = FORBIDDEN;
  }
  const grammar = { rows: masks, states: of.states, vocabulary: of.vocabulary };
  const scored = rows.reduce((n, row) => n + row.sampled.length, 0);
  return layOut(rows, of.states === 0 ? undefined : grammar, scored);
}

const policy = {
  kind: 'policy',
  temperature: 1,
  clipLow: 0.2,
  clipHigh: 0.2,
  entropyCoefficient: 0,
  klCoefficient: 0,
} as const;

export const OBJECTIVES: Readonly<Record<string, Objective>> = {
  supervised: { kind: 'supervised', temperature: 0.7 },
  policy,
  'policy with entropy, at a temperature': { ...policy, temperature: 1.5, entropyCoefficient: 0.02 },
  'policy with KL': { ...policy, clipHigh: 0.28, klCoefficient: 0.1 },
  'policy with entropy and KL': { ...policy, entropyCoefficient: 0.01, klCoefficient: 0.05 },
};
