import { expect, test } from 'vitest';
import { diceEpisodes } from './same-bytes.ts';

test('case 24: 1 to 8 processes give the same bytes', async () => {
  const one = await diceEpisodes('process', 1);
  for (const workers of [2, 4, 8]) expect((await diceEpisodes('process', workers)) === one, `${workers}`).toBe(true);
});
