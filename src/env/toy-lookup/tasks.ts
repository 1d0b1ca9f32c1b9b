/** @module The tasks of toy-lookup: two places out of 24, a fact table drawn from the seed, and the sum that only the verifier knows. */
import { deriveSeed, generator, shuffled, type Task } from '../index.ts';

export const PLACES = [
  ...['Accra', 'Baku', 'Bern', 'Cairo', 'Dakar', 'Delhi', 'Doha', 'Hanoi', 'Havana', 'Kyiv', 'Lima', 'Lisbon'],
  ...['Minsk', 'Nairobi', 'Oslo', 'Ottawa', 'Paris', 'Quito', 'Riga', 'Rome', 'Seoul', 'Sofia', 'Tokyo', 'Tunis'],
] as const;

/** What the environment and a policy may know of a task. All but the facts stands in the prompt or in the config. */
export type LookupPublic = {
  /** Population of every place, each uniform in 1…values. */
  readonly facts: { readonly [place: string]: number };
  readonly x: string;
  readonly y: string;
  readonly values: number;
};

export interface LookupOptions {
  /** Facts are drawn from 1…values; 2…99. */
  readonly values: number;
}

export const PROMPT = ['What is the combined population of ', ' and ', '?'] as const;

export function lookupTask(seed: string, index: number, { values }: LookupOptions): Task {
  const random = generator(deriveSeed(seed, 'toy-lookup', index));
  const fact = () => 1 + Math.floor(random() * values);
  const facts = Object.fromEntries(PLACES.map((place) => [place, fact()]));
  const [x, y] = shuffled(PLACES, random) as [string, string];
  return {
    id: `toy-lookup-${index}`,
    prompt: PROMPT[0] + x + PROMPT[1] + y + PROMPT[2],
    public: { facts, x, y, values } satisfies LookupPublic,
    held: { answer: String((facts[x] ?? 0) + (facts[y] ?? 0)) },
  };
}

/** The guess for a fact that was not looked up: the middle of 1…values, 50 of 99. */
export function guessFact({ values }: Pick<LookupPublic, 'values'>): number {
  return Math.ceil(values / 2);
}

/** The likeliest sum of two facts, 100 for 99 values. */
export function guessSum({ values }: Pick<LookupPublic, 'values'>): number {
  return values + 1;
}
