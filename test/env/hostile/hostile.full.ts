import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RolloutPool } from '../../../src/env/rollouts/pool.ts';
import type { RolloutRequest } from '../../../src/env/rollouts/rollouts.ts';
import { residentMiBOf } from '../../../src/env/sandbox/host/process.ts';
import type { Episode } from '../../../src/records/trajectory.ts';
import { requestOf, requestsOf } from '../../fixtures/rollouts.ts';
import { ATTACKS, type Attack, NATIVE } from './attacks.ts';
import hostile, { type Armed } from './environment.ts';

const ENVIRONMENT = new URL('./environment.ts', import.meta.url).href;
const MIXED = { kind: 'scripted', script: 'mixed' } as const;
const siblings = requestsOf(hostile, 4);
let pool: RolloutPool;
/** What the siblings come to when nobody attacks. */
let calm: string;

beforeAll(async () => {
  pool = await RolloutPool.start({
    environment: ENVIRONMENT,
    options: {},
    workers: 1,
    host: { graceMs: 150, outsideMs: 2500, recycleAfter: 1_000_000 },
  });
  calm = bytes(await pool.run(siblings, MIXED));
});
afterAll(() => pool.close());

const bytes = (episodes: readonly Episode[]) => episodes.map((episode) => JSON.stringify(episode)).join('\n');

function armed({ name, code, call, input }: Attack): RolloutRequest {
  const attack: Armed = {
    ...(code === undefined ? {} : { code }),
    ...(input === undefined ? {} : { input }),
    ...call,
  };
  return requestOf({ id: `attack: ${name}`, prompt: 'Attack.', public: { attack } });
}

/** In the midst of its siblings, in one batch and one host. */
async function strike(attack: Attack): Promise<Episode> {
  const [first, second, ...others] = siblings;
  const episodes = await pool.run([first!, second!, armed(attack), ...others], MIXED);
  expect(bytes(episodes.filter((_, i) => i !== 2)) === calm, 'the siblings are as they are without it').toBe(true);
  return episodes[2]!;
}

function becomes({ stop, failure, steps }: Episode): string {
  if (stop === 'sandbox-failure') return `${stop}: ${failure}`;
  return stop === 'final' ? (steps[0]?.calls[0]?.observation ?? '') : stop;
}

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
    const episode = await strike(attack);
    expect(becomes(episode).slice(0, 5000)).toMatch(attack.becomes);
    // No path of this machine and no number that differs from run to run.
    expect(episode.stopDetail ?? '').not.toMatch(/\/|0x|\bpid\b/);
  });
});

describe('what nothing inside can hold costs its own episode, and its host', () => {
  const episodes = new Map<string, Episode>();
  beforeAll(async () => {
    // All in one batch: the host is lost at the first, and then once for each of them, alone.
    const requests = NATIVE.map(armed);
    const [first, ...others] = siblings;
    const ended = await pool.run([first!, ...requests, ...others], MIXED);
    for (const [i, { name }] of NATIVE.entries()) episodes.set(name, ended[i + 1]!);
    const rest = [ended[0]!, ...ended.slice(requests.length + 1)];
    expect(bytes(rest) === calm, 'the siblings are as they are without them').toBe(true);
  });

  it.each(NATIVE.map((attack) => [attack.name, attack] as const))('%s', (_, attack) => {
    const episode = episodes.get(attack.name)!;
    expect(becomes(episode)).toMatch(attack.becomes);
    expect(episode.stopDetail ?? '').not.toMatch(/\/|0x|\bpid\b/);
  });

  it('one alone among its siblings, then the next batch', async () => {
    await strike(NATIVE.find(({ name }) => name.startsWith('lastIndexOf'))!);
    expect(bytes(await pool.run(siblings, MIXED)) === calm).toBe(true);
  });
});

describe('after all of them', () => {
  it.skipIf(process.platform !== 'linux')(
    'memory returns: many bombs leave a host no larger than one of each',
    async () => {
      const names = ['array bomb', 'string bomb', 'typed arrays outside the heap', 'output of 100 MB'];
      const bombs = ATTACKS.filter(({ name }) => names.includes(name));
      expect(bombs).toHaveLength(names.length);
      for (const bomb of bombs) await strike(bomb);
      const afterOne = largestHost();
      for (let round = 0; round < 4; round++) for (const bomb of bombs) await strike(bomb);
      expect(largestHost() - afterOne).toBeLessThan(64);
    },
  );

  it('two runs of an attack that the isolate ends give the same bytes', async () => {
    for (const name of ['endless loop', 'endless recursion', 'output of 100 MB', 'async function']) {
      const attack = ATTACKS.find((one) => one.name === name)!;
      expect(JSON.stringify(await strike(attack))).toBe(JSON.stringify(await strike(attack)));
    }
  });
});
