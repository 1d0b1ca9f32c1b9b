/** Of the hostile suite what is over in seconds, for every change: all that ends at once, and of each other kind one. All of it: `hostile.full.ts`. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ATTACKS, HARMLESS, NATIVE } from './attacks.ts';
import { expectBecame, Struck } from './struck.ts';

const ONE_OF_EACH = [
  'endless loop',
  'catastrophic regular expression',
  'getter that loops on copy-out',
  'endless recursion',
  'array bomb',
  'typed arrays outside the heap',
  'output of 100 MB',
  'async function',
  '__proto__ among the arguments',
  'lastIndexOf over 2^32 holes',
];
const CHOSEN = [...ATTACKS, ...NATIVE].filter(({ name }) => ONE_OF_EACH.includes(name));

let struck: Struck;
beforeAll(async () => {
  struck = await Struck.start();
});
afterAll(() => struck.close());

it('has one of each', () => {
  expect(CHOSEN).toHaveLength(ONE_OF_EACH.length);
});

it('what ends at once, all in one host among their siblings', async () => {
  const episodes = await struck.by(...HARMLESS);
  for (const [i, attack] of HARMLESS.entries()) expectBecame(episodes[i]!, attack);
});

it.each(CHOSEN.map((attack) => [attack.name, attack] as const))('%s', async (_, attack) => {
  const [episode] = await struck.by(attack);
  expectBecame(episode!, attack);
  await struck.expectCalm();
});
