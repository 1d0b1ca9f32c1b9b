import { afterAll, expect, test } from 'vitest';
import type { Environment, Isolation } from '../../src/env/environment.ts';
import { importEnvironment } from '../../src/env/load.ts';
import { RolloutPool } from '../../src/env/rollouts/pool.ts';
import type { Episode } from '../../src/records/trajectory.ts';
import { requestsOf } from '../fixtures/rollouts.ts';
import { diceEpisodes } from './same-bytes.ts';

const FINGERPRINT = new URL('../fixtures/fingerprint/index.ts', import.meta.url).href;
const before = { TZ: process.env.TZ, LANG: process.env.LANG, LC_ALL: process.env.LC_ALL };
afterAll(() => {
  for (const [name, value] of Object.entries(before)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
});

async function fingerprints(isolation: Isolation, reset: Environment['reset']): Promise<readonly Episode[]> {
  const environment = await importEnvironment(FINGERPRINT);
  const pool = await RolloutPool.start({ environment: FINGERPRINT, options: {}, isolation, reset, workers: 1 });
  const episodes = await pool.run(requestsOf(environment, 3), { kind: 'scripted', script: 'oracle' });
  await pool.close();
  return episodes;
}

test('case 24: 1 to 8 threads give the same bytes', async () => {
  const one = await diceEpisodes('thread', 1);
  expect(one.length).toBeGreaterThan(10_000);
  for (const workers of [2, 3, 5, 8]) expect((await diceEpisodes('thread', workers)) === one, `${workers}`).toBe(true);
});

test('case 24: so do processes', async () => {
  expect((await diceEpisodes('process', 3)) === (await diceEpisodes('thread', 1))).toBe(true);
});

test('all that code inside can read is the same in every episode, thread, process, time zone and language, at every reset level', async () => {
  const seen = new Set<string>();
  const read = (episodes: readonly Episode[]) => {
    for (const { steps } of episodes) {
      const [first, second] = steps.map(({ calls }) => calls[0]!);
      expect(first!.error).toBeUndefined();
      expect(second!.error).toBe('too-deep');
      seen.add(`${first!.observation}\n${second!.observation}`);
    }
  };
  read(await fingerprints('thread', 'context'));
  Object.assign(process.env, { TZ: 'Asia/Kolkata', LANG: 'tr_TR.UTF-8', LC_ALL: 'tr_TR.UTF-8' });
  read(await fingerprints('thread', 'isolate'));
  read(await fingerprints('process', 'state'));
  expect([...seen]).toHaveLength(1);
  const [text = ''] = seen;
  // It did read: some thousand properties, and no path of this machine among what it could tell.
  expect(Number(text.split('\n', 1)[0])).toBeGreaterThan(1000);
  expect(text).not.toMatch(/file:|node:|\/(home|root|tmp|usr|work)\b|isogym/);
  expect(text).toContain('Maximum call stack size exceeded');
});
