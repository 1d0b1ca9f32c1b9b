/** @module js-puzzles under attack: its own world and bounds, a tool whose schema is a trap, and a script that attacks where its task says so. */
import { z } from 'zod';
import { defineEnvironment, defineTool, type Json, type ScriptedAction } from '../../../src/env/index.ts';
import jsPuzzles from '../../../src/env/js-puzzles/index.ts';

/** The attack that a task's public part carries. */
export type Armed = {
  readonly code?: string;
  readonly tool?: string;
  readonly arguments?: string;
  readonly input?: string;
};

const { oracle } = jsPuzzles.scripts;

export default defineEnvironment({
  name: 'hostile',
  options: jsPuzzles.options,
  world: jsPuzzles.world,
  tools: [
    ...jsPuzzles.tools,
    defineTool({
      name: 'match',
      description: 'Never run: its schema does not come to an end.',
      parameters: z.strictObject({ text: z.string().regex(/^(a+)+$/) }),
      effect: 'read',
    }),
  ],
  answer: jsPuzzles.answer,
  limits: { ...jsPuzzles.limits, maxTokens: 4_000_000, maxActionTokens: 2_000_000 },
  code: { ...jsPuzzles.code, timeoutMs: 300 },
  task: jsPuzzles.task,
  scripts: {
    /** Armed tasks attack once and then give up; the others are solved. */
    mixed: (view) => {
      const { attack } = view.task.public as { readonly attack?: Armed };
      if (attack === undefined) return oracle!(view);
      return view.steps.length === 0 ? strike(attack) : { final: '(x) => x' };
    },
  },
});

function strike({ code = '', input = '1', tool = 'run', arguments: written }: Armed): ScriptedAction {
  const args = written === undefined ? { code, input } : (JSON.parse(written) as { [key: string]: Json });
  return { calls: [{ tool, arguments: args }] };
}
