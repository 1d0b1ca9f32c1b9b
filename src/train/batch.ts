/** @module A batch: the sampled tokens of many episodes as plain typed arrays, ready for tensors. No tensor is made here. */
import type { Grammar } from '../policy/grammar/index.ts';
import { IsogymError } from '../records/errors.ts';
import type { Segment, Trajectory } from '../records/trajectory.ts';
import type { Advantages } from './advantages.ts';
import { sampledBy } from './returns.ts';

/**
 * B token rows, one a segment, padded to a common width T, and the N sampled tokens in them, which alone are scored: in the rows'
 * order, and in a row in the order of sampling. A micro-batch is a batch of some of the rows, with the whole batch's denominator.
 */
export interface Batch {
  /** The same in ragged form [B]. */
  readonly rows: readonly Row[];
  /** T: the longest row, rounded up to a multiple of 8 so that few different shapes occur. */
  readonly width: number;
  /** [B, T], row-major, padded with 0 on the right. */
  readonly ids: Int32Array;
  /** [N]: flat index b·T + t of the position before each scored token: the output there predicts it. */
  readonly scored: Int32Array;
  /** [N]: the scored tokens. */
  readonly targets: Int32Array;
  /** [N]: recorded logprobs of the behaviour policy [nats], never recomputed; 0 in a supervised batch. */
  readonly behaviour: Float32Array;
  /** [N]: of each token's episode or step; 1 in a supervised batch. */
  readonly advantages: Float32Array;
  /** [N]: the row of `masks` that holds where each token was sampled. */
  readonly maskIndex: Int32Array;
  /** Absent where every token was always allowed. Shared by all micro-batches of a batch. */
  readonly masks?: GrammarMasks;
  /** What the sum over tokens is divided by. */
  readonly denominator: number;
}

export interface Row {
  readonly episode: string;
  readonly segment: number;
  readonly ids: readonly number[];
  readonly sampled: readonly SampledToken[];
}

interface SampledToken {
  /** Its place in `ids`, at least 1. */
  readonly at: number;
  readonly behaviour: number;
  readonly advantage: number;
  readonly mask: number;
}

/** What the grammar allows, one row for each of its states that occurs. */
export interface GrammarMasks {
  /** [S, V], row-major: 0 where the token is allowed, `FORBIDDEN` where it is not. */
  readonly rows: Float32Array;
  readonly states: number;
  readonly vocabulary: number;
}

/** Stands for −∞; finite, so that no arithmetic with it gives NaN. Its exponential is 0. */
export const FORBIDDEN = -1e9;

export interface PackOptions {
  /** Those that are not `usable` are left out. */
  readonly trajectories: readonly Trajectory[];
  /** `'supervised'` (a warm start): every sampled token has weight 1, and tokens without logprobs are welcome. */
  readonly advantages: Advantages['byEpisode'] | 'supervised';
  /** The grammar that the tokens were sampled under, and the number of logits. */
  readonly grammar?: { readonly grammar: Grammar; readonly vocabulary: number };
  /**
   * - `tokens`: the mean over all scored tokens of the batch (as DAPO: Yu et al. 2025, arXiv 2503.14476). A deliberate deviation
   *   from GRPO's mean of each episode's mean (arXiv 2402.03300, eq. 3), in which a token of a long episode weighs less.
   * - `episodes`: the mean over usable episodes of the sum over their tokens: REINFORCE's estimate of the gradient of the expected return.
   */
  readonly denominator: 'tokens' | 'episodes';
}

/**
 * Packs the sampled tokens of usable trajectories. A token with mask 0, given or forced, is context and nothing else.
 * The grammar is followed from its start in every step; only sampled tokens advance it.
 *
 * @throws REFUSED_UNTRAINABLE where a sampled token has no logprob (a greedy, scripted or remote policy's) and the batch is not supervised.
 * @throws NONFINITE_LOGPROB where a recorded logprob is NaN or infinite.
 * @throws NOT_ALLOWED where the grammar forbids a token that was sampled.
 * @throws NOTHING_SAMPLED where no usable trajectory holds a sampled token.
 * @throws TOKENS_UNCLAIMED, SEGMENT_INVALID, NO_ADVANTAGE where the records contradict themselves or each other.
 */
export function packBatch({ trajectories, advantages, grammar, denominator }: PackOptions): Batch {
  const usable = trajectories.filter((trajectory) => trajectory.usable);
  const table = grammar && maskTable(grammar.grammar, grammar.vocabulary);
  const rows: Row[] = [];
  for (const trajectory of usable) {
    const owners = sampledBy(trajectory);
    const weights = advantages === 'supervised' ? undefined : advantages.get(trajectory.id);
    if (advantages !== 'supervised' && weights?.length !== trajectory.steps.length) {
      throw new IsogymError(
        'NO_ADVANTAGE',
        `episode ${trajectory.id}: expected ${trajectory.steps.length} advantages, found ${weights?.length ?? 'none'}`,
      );
    }
    for (const [s, segment] of trajectory.segments.entries()) {
      const where = { episode: trajectory.id, segment: s };
      const sampled = sampledTokens(where, segment, owners[s] ?? new Int32Array(), weights, table);
      if (sampled.length > 0) rows.push({ ...where, ids: segment.ids, sampled });
    }
  }
  const scored = rows.reduce((sum, row) => sum + row.sampled.length, 0);
  if (scored === 0) {
    throw new IsogymError(
      'NOTHING_SAMPLED',
      `expected at least one sampled token, found none in ${usable.length} usable of ${trajectories.length} episodes`,
    );
  }
  return layOut(rows, table?.masks(), denominator === 'tokens' ? scored : usable.length);
}

/**
 * Cuts a batch into micro-batches of at most `maxTokens` = B·T padded tokens each; a row that is longer than that stands alone.
 * Rows are sorted by length, longest first, so that little is padded. Sums over the parts equal the sum over the whole, as the denominator stays.
 */
export function split(batch: Batch, maxTokens: number): readonly Batch[] {
  const parts: Row[][] = [];
  let room = 0;
  for (const row of batch.rows.toSorted((a, b) => b.ids.length - a.ids.length)) {
    const part = parts.at(-1);
    if (part !== undefined && part.length < room) part.push(row);
    else {
      parts.push([row]);
      room = Math.floor(maxTokens / widthOf([row]));
    }
  }
  return parts.map((rows) => layOut(rows, batch.masks, batch.denominator));
}

/** The share of padding among the tokens of these batches, in [0, 1). */
export function paddingShare(batches: readonly Batch[]): number {
  let real = 0;
  let all = 0;
  for (const { rows, ids } of batches) {
    real += rows.reduce((sum, row) => sum + row.ids.length, 0);
    all += ids.length;
  }
  return 1 - real / all;
}

/** Where scored token `n` stands, in words: for errors. */
export function locate(batch: Batch, n: number): string {
  const before = batch.scored[n] ?? 0;
  const row = batch.rows[Math.floor(before / batch.width)];
  return place(row?.episode ?? '?', row?.segment ?? 0, (before % batch.width) + 1);
}

function place(episode: string, segment: number, position: number): string {
  return `episode ${episode}, segment ${segment}, position ${position}`;
}

function sampledTokens(
  { episode, segment: s }: { readonly episode: string; readonly segment: number },
  segment: Segment,
  owner: Int32Array,
  weights: Float64Array | undefined,
  table: MaskTable | undefined,
): SampledToken[] {
  const { ids, actionMask, logprobs, trainable } = segment;
  if (actionMask.length !== ids.length || logprobs.length !== ids.length) {
    throw new IsogymError(
      'SEGMENT_INVALID',
      `episode ${episode}, segment ${s}: expected arrays of equal length, found ${ids.length} ids, ${actionMask.length} mask entries and ${logprobs.length} logprobs`,
    );
  }
  const sampled: SampledToken[] = [];
  let step = -1;
  let state = 0;
  let previous = -1;
  for (const [at, id] of ids.entries()) {
    if (actionMask[at] !== 1) continue;
    const by = owner[at] ?? -1;
    if (at === 0) {
      throw new IsogymError(
        'SEGMENT_INVALID',
        `${place(episode, s, at)}: expected a given token first, found a sampled one`,
        {
          hint: 'Nothing predicts the first token of a sequence: give the policy a prompt of at least one token.',
        },
      );
    }
    let mask = 0;
    if (table !== undefined) {
      state = by === step ? table.grammar.next(state, previous) : table.grammar.start;
      mask = table.index(state);
      if (!table.allows(mask, id)) {
        throw new IsogymError(
          'NOT_ALLOWED',
          `${place(episode, s, at)}: expected a token that the grammar allows there, found ${id}`,
          {
            hint: 'Train under the grammar and the tokenizer that the episode was sampled with.',
          },
        );
      }
    }
    let behaviour = 0;
    if (weights !== undefined) {
      const logprob = trainable ? logprobs[at] : null;
      if (logprob === null || logprob === undefined) {
        throw new IsogymError(
          'REFUSED_UNTRAINABLE',
          `${place(episode, s, at)}: expected the logprob that the token was sampled with, found none`,
          {
            hint: 'Greedy, scripted and remote policies give no logprobs: evaluate them, or use their episodes for a supervised warm start.',
          },
        );
      }
      if (!Number.isFinite(logprob)) {
        throw new IsogymError(
          'NONFINITE_LOGPROB',
          `${place(episode, s, at)}: expected a finite recorded logprob, found ${logprob}`,
        );
      }
      behaviour = logprob;
    }
    sampled.push({ at, behaviour, advantage: weights === undefined ? 1 : (weights[by] ?? Number.NaN), mask });
    step = by;
    previous = id;
  }
  return sampled;
}

type MaskTable = ReturnType<typeof maskTable>;

function maskTable(grammar: Grammar, vocabulary: number) {
  const indexOf = new Map<number, number>();
  const rows: Float32Array[] = [];
  return {
    grammar,
    index(state: number): number {
      const known = indexOf.get(state);
      if (known !== undefined) return known;
      const row = new Float32Array(vocabulary).fill(FORBIDDEN);
      for (const id of grammar.allowed(state)) row[id] = 0;
      indexOf.set(state, rows.length);
      return rows.push(row) - 1;
    },
    allows: (mask: number, id: number): boolean => rows[mask]?.[id] === 0,
    masks(): GrammarMasks {
      const all = new Float32Array(rows.length * vocabulary);
      for (const [r, row] of rows.entries()) all.set(row, r * vocabulary);
      return { rows: all, states: rows.length, vocabulary };
    },
  };
}

/** Rows as one batch, padded to the width that they need. */
export function layOut(rows: readonly Row[], masks: GrammarMasks | undefined, denominator: number): Batch {
  const width = widthOf(rows);
  const tokens = rows.reduce((sum, row) => sum + row.sampled.length, 0);
  const ids = new Int32Array(rows.length * width);
  const scored = new Int32Array(tokens);
  const targets = new Int32Array(tokens);
  const behaviour = new Float32Array(tokens);
  const advantages = new Float32Array(tokens);
  const maskIndex = new Int32Array(tokens);
  let n = 0;
  for (const [b, row] of rows.entries()) {
    ids.set(row.ids, b * width);
    for (const token of row.sampled) {
      scored[n] = b * width + token.at - 1;
      targets[n] = row.ids[token.at] ?? 0;
      behaviour[n] = token.behaviour;
      advantages[n] = token.advantage;
      maskIndex[n] = token.mask;
      n++;
    }
  }
  return { rows, width, ids, scored, targets, behaviour, advantages, maskIndex, denominator, ...(masks && { masks }) };
}

/** The longest row's length, rounded up to a multiple of 8. */
export function widthOf(rows: readonly Row[]): number {
  const longest = rows.reduce((most, row) => Math.max(most, row.ids.length), 0);
  return Math.ceil(longest / 8) * 8;
}
