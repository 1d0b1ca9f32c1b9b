import { expect, it } from 'vitest';
import { fuzz } from './fuzzing.ts';
import { armedProgram } from './programs.ts';

it('programs are a function of their seed and number', () => {
  expect(armedProgram('a', 3, { dire: 0 })).toEqual(armedProgram('a', 3, { dire: 0 }));
  expect(armedProgram('a', 3, { dire: 0 })).not.toEqual(armedProgram('b', 3, { dire: 0 }));
});

it('150 generated programs end with something that may be seen, and touch nobody else', async () => {
  const endings = await fuzz('short', 150, { dire: 0 });
  // The generator must reach further than syntax errors for this to say anything.
  expect(endings.get('a result') ?? 0).toBeGreaterThan(20);
  expect([...endings.keys()]).toContain('error');
  expect([...endings.keys()]).toContain('refused');
});
