import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { residentMiBOf } from '../../../src/env/sandbox/host/process.ts';
import type { Episode } from '../../../src/records/trajectory.ts';
import { ATTACKS, NATIVE } from './attacks.ts';
import { expectBecame, Struck } from './struck.ts';

let struck: Struck;
beforeAll(async () => {
  struck = await Struck.start();
});
afterAll(() => struck.close());

/** Processes that this one has started, by what the system says [MiB]. */
function largestHost(): number {
  const children = readdirSync('/proc/self/task').flatMap((thread) =>
    readFileSync(`/proc/self/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
  );
  return Math.max(...children.map((pid) => residentMiBOf(pid) ?? 0));
}

it('are at least sixty, with a name each', () => {
  const names = [...ATTACKS, ...NATIVE].map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(names.length).toBeGreaterThanOrEqual(60);
});

describe('the policy sees what came of it, its siblings and the next batch do not', () => {
  it.each(ATTACKS.map((attack) => [attack.name, attack] as const))('%s', async (_, attack) => {
    const [episode] = await struck.by(attack);
    expectBecame(episode!, attack);
  });
});

describe('what nothing inside can hold costs its own episode, and its host', () => {
  const episodes = new Map<string, Episode>();
  beforeAll(async () => {
    // All in one batch: the host is lost at the first, and then once for each of them, alone.
    const ended = await struck.by(...NATIVE);
    for (const [i, { name }] of NATIVE.entries()) episodes.set(name, ended[i]!);
  });

  it.each(NATIVE.map((attack) => [attack.name, attack] as const))('%s', (_, attack) => {
    expectBecame(episodes.get(attack.name)!, attack);
  });

  it('one alone among its siblings, then the next batch', async () => {
    await struck.by(NATIVE.find(({ name }) => name.startsWith('lastIndexOf'))!);
    await struck.expectCalm();
  });
});

describe('after all of them', () => {
  it.skipIf(process.platform !== 'linux')(
    'memory returns: what the isolate ends leaves a host no larger after three times than after once',
    async () => {
      // The others cost their host, and with it what it held.
      const held = ATTACKS.filter(({ becomes }) => !becomes.test('sandbox-failure: hang'));
      expect(held.length).toBeGreaterThan(60);
      await struck.by(...held);
      const afterOne = largestHost();
      for (let round = 0; round < 2; round++) await struck.by(...held);
      expect(largestHost() - afterOne).toBeLessThan(64);
    },
  );

  it('two runs of an attack that the isolate ends give the same bytes', async () => {
    for (const name of ['endless loop', 'endless recursion', 'output of 100 MB', 'async function']) {
      const attack = ATTACKS.find((one) => one.name === name)!;
      expect(JSON.stringify(await struck.by(attack))).toBe(JSON.stringify(await struck.by(attack)));
    }
  });
});
