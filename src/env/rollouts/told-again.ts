/** @module An episode that is told again what it was told, because its world died under it: whether it asks again what it asked. */
import type { TokenRequest } from '../../policy/token-policy.ts';

/**
 * Why the answers to what it asked before are none to what it asks now; undefined where they are. A tool that ran into its
 * time limit the first time alone is enough: its tokens would then stand in the record after a context that they were not sampled in.
 * @param turn counted from 0
 */
export function strayedAt(turn: number, before: TokenRequest, now: TokenRequest): string | undefined {
  const same = before.seed === now.seed && before.maxTokens === now.maxTokens && sameIds(before.newIds, now.newIds);
  if (same) return undefined;
  return `its worker died, and told again what it had been told it came to something else before action ${turn + 1}`;
}

function sameIds(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((id, i) => id === b[i]);
}
