/** @module The tasks of js-puzzles: a family, its number, examples that anybody may see, and the hidden cases that only the verifier knows. */
import { deriveSeed, generator, inputError, type Json, type Task } from '../index.ts';
import { FAMILIES, type Family } from './families.ts';

export type PuzzlePublic = {
  readonly family: string;
  readonly k: number;
  readonly examples: readonly Case[];
};
/** What is expected of the function: both sides are JSON values. */
export type Case = { readonly input: Json; readonly output: Json };

const EXAMPLES = 2;
const HIDDEN = 8;

export function puzzleTask(seed: string, index: number): Task {
  const random = generator(deriveSeed(seed, 'js-puzzles', index));
  const family = FAMILIES[Math.floor(random() * FAMILIES.length)] as Family;
  const k = 2 + Math.floor(random() * 8);
  const cases = Array.from({ length: EXAMPLES + HIDDEN }, (): Case => {
    const input = family.input(random);
    return { input, output: family.solve(input as never, k) };
  });
  const examples = cases.slice(0, EXAMPLES);
  const shown = examples.map(({ input, output }) => `${JSON.stringify(input)} gives ${JSON.stringify(output)}`);
  return {
    id: `js-puzzles-${index}`,
    prompt: `Write a JavaScript function that ${family.describe(k)}. For example, ${shown.join(', and ')}. Try it with the tool run; your final answer is the function, as an expression.`,
    public: { family: family.name, k, examples } satisfies PuzzlePublic,
    held: { cases: cases.slice(EXAMPLES) },
  };
}

export function familyOf({ family }: Pick<PuzzlePublic, 'family'>): Family {
  const found = FAMILIES.find(({ name }) => name === family);
  if (found === undefined) throw inputError('UNKNOWN_FAMILY', `expected a family of js-puzzles, found ${family}`);
  return found;
}
