/** @module Nearest name: the suggestion in "did you mean …?". */

/** Levenshtein distance between two strings, in UTF-16 code units. */
export function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(substitution, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
    previous = row;
  }
  return previous[b.length] ?? 0;
}

/** The candidate closest to `name` (first among equals), or undefined where none is within half of the longer one's length. */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  const asked = name.slice(0, 100);
  let best: string | undefined;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) {
    const distance = editDistance(asked.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance && distance <= Math.max(asked.length, candidate.length) / 2) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}
