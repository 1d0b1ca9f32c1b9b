/** @module What the tests of generating ask for: one grammar, and requests of several episodes. */
import type { Grammar } from '../../../src/policy/grammar/index.ts';
import type { TokenRequest } from '../../../src/policy/token-policy.ts';

export const END = 10;

/**
 * Actions `x y 7 8 (9 y 7 8)* end` with x in 0–3 and y in 4–6: after y two tokens are forced. State is the number of the place.
 */
export const GRAMMAR: Grammar = {
  start: 0,
  allowed: (state) => Int32Array.from([[0, 1, 2, 3], [4, 5, 6], [7], [8], [9, END]][state]!),
  next: (state) => (state === 4 ? 1 : state + 1),
};

export const requests = (round: number, episodes: readonly number[], maxTokens = 9): TokenRequest[] =>
  episodes.map((e) => ({
    episodeId: `e${e}`,
    newIds: Array.from({ length: 1 + ((e * 5 + round * 3) % 4) }, (_, i) => (e + 2 * i + round) % END),
    maxTokens,
    seed: `seed/${e}`,
  }));
