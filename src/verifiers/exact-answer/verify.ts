/** @module Exact answer, inside the isolate: 1 where the final answer, without white space around it, is the expected text, else 0. */
import type { VerifierInput } from '../verifier.ts';

export default function verify({ held, final }: Pick<VerifierInput, 'held' | 'final'>): {
  readonly score: number;
  readonly reasons: readonly string[];
} {
  const expected = held !== null && typeof held === 'object' && 'answer' in held ? held.answer : undefined;
  // A task without an answer is a mistake in the task, not a wrong answer: thrown, hence unscored.
  if (typeof expected !== 'string') throw new TypeError('Expected a string in held.answer.');
  if (final === null) return { score: 0, reasons: ['no final answer'] };
  const found = final.trim();
  if (found === expected) return { score: 1, reasons: ['the answer is the expected one'] };
  return { score: 0, reasons: [`expected ${JSON.stringify(expected)}, found ${JSON.stringify(found)}`] };
}
