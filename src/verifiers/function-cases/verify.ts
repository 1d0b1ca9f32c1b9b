/** @module Function cases, inside the verifier's isolate: the share of `held.cases` on which the function gives what is expected. The function runs elsewhere, in a fresh context for each case, and never sees what is expected of it. */
import type { Json } from '../../records/json.ts';
import type { Verify } from '../verifier.ts';

interface Case {
  readonly input: Json;
  readonly output: Json;
}

const verify: Verify = ({ held, final }, { runCode }) => {
  const cases = casesOf(held);
  if (final === null) return { score: 0, reasons: ['no final answer'] };
  const reasons: string[] = [];
  let passed = 0;
  for (const { input, output } of cases) {
    const [outcome] = runCode(final, [JSON.stringify(input)]);
    if (outcome?.ok && outcome.json === JSON.stringify(output)) passed++;
    else if (outcome !== undefined && !outcome.ok) reasons.push(`${outcome.failure}: ${outcome.message}`);
    // What ran out of time or memory once is not tried on the others: they count as failed.
    if (outcome !== undefined && !outcome.ok && (outcome.failure === 'timeout' || outcome.failure === 'out-of-memory'))
      break;
  }
  return { score: passed / cases.length, reasons: [`${passed} of ${cases.length} cases`, ...reasons.slice(0, 3)] };
};

/** A task without cases is a mistake in the task, not a wrong answer: thrown, hence unscored. */
function casesOf(held: Json): readonly Case[] {
  const cases = held !== null && typeof held === 'object' && 'cases' in held ? held.cases : undefined;
  if (!Array.isArray(cases) || cases.length === 0) throw new TypeError('Expected a list of cases in held.cases.');
  return cases as readonly Case[];
}

export default verify;
