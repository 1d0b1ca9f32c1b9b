/** @module A class with reset and step, declared as an environment: its actions are one tool. */
import { gymEnvironment } from 'isogym/gym';
import { z } from 'zod';
import { FrozenLake } from './frozen-lake.ts';

/** The way to the goal from each frozen cell, for a lake that is not slippery. */
const WAY = [
  'down',
  'right',
  'down',
  'left',
  'down',
  '',
  'down',
  '',
  'right',
  'right',
  'down',
  '',
  '',
  'right',
  'right',
];

export default gymEnvironment({
  name: 'frozen-lake',
  options: z.strictObject({
    slippery: z.boolean().default(false).describe('Half of the steps go to one side of where they were meant to.'),
  }),
  world: new URL('./world.ts', import.meta.url),
  make: (settings) => new FrozenLake(settings),
  actions: ['left', 'down', 'right', 'up'],
  prompt: 'Cross the frozen lake, 4 cells wide, to cell 15; keep off the holes. You stand on cell ',
  words: Array.from({ length: 16 }, (_, cell) => String(cell)).filter((cell) => cell.length > 1),
  maxSteps: 16,
  limits: { maxTokens: 256, maxActionTokens: 8 },
  // The class keeps nothing outside itself, and each episode makes it anew.
  reset: 'state',
  states: 16,
  oracle: (cell) => WAY[Number(cell)] ?? '',
});
