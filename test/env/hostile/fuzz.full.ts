import { expect, it } from 'vitest';
import { fuzz } from './fuzzing.ts';

it.each(['long-1', 'long-2', 'long-3'])(
  '1500 generated programs, dire ones among them, end and touch nobody else: %s',
  async (seed) => {
    const endings = await fuzz(seed, 1500, { dire: 0.002 });
    console.log(seed, Object.fromEntries(endings));
    expect(endings.get('a result') ?? 0).toBeGreaterThan(200);
  },
);
