/** @module my-environment, as a policy and a trainer see it: a number from 1 to 9 is hidden; compare until it is known, then answer. */
import {
  defineEnvironment,
  defineTool,
  deriveSeed,
  generator,
  type Script,
  type ScriptView,
  type TabularView,
} from 'isogym/env';
import { z } from 'zod';

const HIGHEST = 9;

/**
 * What the world is begun with. It knows the number, since it compares with it; a policy learns what the tool says. What no tool
 * needs (an expected text, hidden tests) goes into `held` alone, which only the verifier is given.
 */
export interface Hidden {
  readonly number: number;
}

/** The lowest and the highest number that the comparisons so far leave possible. */
function possible({ steps }: ScriptView): readonly [low: number, high: number] {
  let [low, high] = [1, HIGHEST];
  for (const { action, calls } of steps) {
    const number = Number(action.calls[0]?.arguments?.number);
    const observation = calls[0]?.observation;
    if (observation === 'higher') low = Math.max(low, number + 1);
    if (observation === 'lower') high = Math.min(high, number - 1);
    if (observation === 'equal') [low, high] = [number, number];
  }
  return [low, high];
}

const compare = (number: number) => ({ calls: [{ tool: 'compare', arguments: { number } }] });

/** Solves every task: `isogym check` and the table at the end of a run compare with it. */
const oracle: Script = (view) => {
  const [low, high] = possible(view);
  return low === high ? { final: String(low) } : compare(Math.floor((low + high) / 2));
};

/** Compares once and answers what is still possible: with the oracle, demonstrations of mixed quality for a warm start. */
const hasty: Script = (view) => (view.steps.length === 0 ? compare(5) : { final: String(possible(view)[0]) });

/** For `policy.kind: tabular`: what it knows as one number, and its actions in words. A transformer needs none of this. */
const tabular: TabularView = {
  states: HIGHEST * HIGHEST,
  actions: ['compare the middle', 'compare the lowest', 'answer'],
  observe(view) {
    const [low, high] = possible(view);
    return (low - 1) * HIGHEST + high - 1;
  },
  act(action, view) {
    const [low, high] = possible(view);
    if (action === 0) return compare(Math.floor((low + high) / 2));
    return action === 1 ? compare(low) : { final: String(low) };
  },
};

export default defineEnvironment({
  name: 'my-environment',
  options: z.strictObject({}),
  world: new URL('./world.ts', import.meta.url),
  tools: [
    defineTool({
      name: 'compare',
      description: 'Says whether the hidden number is lower or higher than a number, or equal to it.',
      parameters: z.strictObject({ number: z.int().min(1).max(HIGHEST) }),
      effect: 'read',
    }),
  ],
  answer: z.string().regex(/^[1-9]$/),
  format: 'compact',
  words: ['Which number from 1 to 9 is hidden?', 'compare ', 'answer ', 'lower', 'higher', 'equal'],
  limits: { maxSteps: 8, maxTokens: 64, maxActionTokens: 4 },
  task(seed, index) {
    const random = generator(deriveSeed(seed, 'my-environment', index));
    const number = 1 + Math.floor(random() * HIGHEST);
    return {
      id: `my-environment-${index}`,
      prompt: 'Which number from 1 to 9 is hidden?',
      public: { number } satisfies Hidden,
      held: { answer: String(number) },
    };
  },
  scripts: { oracle, hasty },
  tabular,
});
