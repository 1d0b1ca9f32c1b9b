/** @module An environment of one's own: one of four boxes holds a gem. Open boxes until it turns up, then name it. */
import { defineEnvironment, defineTool, deriveSeed, generator, type TabularView } from 'isogym/env';
import { z } from 'zod';

const BOXES = ['a', 'b', 'c', 'd'] as const;
const GEMS = ['ruby', 'opal', 'jade'] as const;

/** What the world is begun with. Only the boxes' contents: which gem is expected is for the verifier alone. */
export interface Boxes {
  readonly boxes: Readonly<Record<(typeof BOXES)[number], string>>;
}

/** What a policy knows: the gem, once it is found, and which boxes it has opened. */
const tabular: TabularView = {
  // 16 sets of opened boxes, and one state for "found".
  states: 17,
  actions: [...BOXES.map((box) => `open ${box}`), 'answer'],
  observe({ steps }) {
    const calls = steps.flatMap((step) => step.calls);
    if (calls.some((call) => call.observation !== 'empty')) return 16;
    return calls.reduce((opened, _, i) => opened | (1 << BOXES.indexOf(boxOf(steps, i))), 0);
  },
  act(action, { steps }) {
    const box = BOXES[action];
    if (box !== undefined) return { calls: [{ tool: 'open', arguments: { box } }] };
    const found = steps.flatMap((step) => step.calls).find((call) => call.observation !== 'empty');
    return { final: found?.observation ?? GEMS[0] };
  },
};

function boxOf(steps: Parameters<TabularView['observe']>[0]['steps'], step: number): (typeof BOXES)[number] {
  return steps[step]?.action.calls[0]?.arguments?.box as (typeof BOXES)[number];
}

export default defineEnvironment({
  name: 'treasure',
  options: z.strictObject({}),
  world: new URL('./world.ts', import.meta.url),
  tools: [
    defineTool({
      name: 'open',
      description: 'Opens a box and says what lies in it: a gem, or nothing ("empty").',
      parameters: z.strictObject({ box: z.enum(BOXES) }),
      effect: 'read',
    }),
  ],
  answer: z.enum(GEMS),
  format: 'compact',
  words: ['Which gem is hidden?', 'open ', 'answer ', 'empty', ...GEMS],
  limits: { maxSteps: 6, maxTokens: 64, maxActionTokens: 8 },
  task(seed, index) {
    const random = generator(deriveSeed(seed, 'treasure', index));
    const gem = GEMS[Math.floor(random() * GEMS.length)] ?? GEMS[0];
    const place = Math.floor(random() * BOXES.length);
    return {
      id: `treasure-${index}`,
      prompt: 'Which gem is hidden?',
      public: { boxes: Object.fromEntries(BOXES.map((box, i) => [box, i === place ? gem : 'empty'])) },
      held: { gem },
    };
  },
  scripts: {
    oracle: ({ steps }) => {
      const [last] = steps.at(-1)?.calls ?? [];
      if (last !== undefined && last.observation !== 'empty') return { final: last.observation };
      return { calls: [{ tool: 'open', arguments: { box: BOXES[steps.length] ?? 'a' } }] };
    },
  },
  tabular,
});
