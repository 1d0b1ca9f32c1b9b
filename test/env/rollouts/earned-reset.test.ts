import { describe, expect, it, test } from 'vitest';
import { isSampled } from '../../../src/env/rollouts/earned-reset.ts';
import { RolloutPool } from '../../../src/env/rollouts/pool.ts';
import type { PolicySpec, RolloutSetup } from '../../../src/env/rollouts/rollouts.ts';
import type { Episode } from '../../../src/records/trajectory.ts';
import { FakeTokenPolicy } from '../../fixtures/rollouts.ts';

const LEAKY = new URL('../../fixtures/leaky/index.ts', import.meta.url).href;
const DICE = new URL('../../fixtures/dice/index.ts', import.meta.url).href;
const leak: PolicySpec = { kind: 'texts', texts: ['{"tool":"leak","args":{}}', '{"tool":"count","args":{}}'] };

const requestsOf = (count: number, from = 0) =>
  Array.from({ length: count }, (_, i) => ({
    id: `e-${from + i}`,
    group: 'g',
    task: { id: 'leaky-0', prompt: 'Go.', public: { openly: false } },
    iteration: 0,
    rollout: from + i,
    seed: `seed-${from + i}`,
  }));
const sampledAt = requestsOf(1000).findIndex(({ seed }) => isSampled(seed));

async function rolled(
  setup: Partial<RolloutSetup> & { readonly workers?: number },
  batches: readonly (readonly ReturnType<typeof requestsOf>[number][])[],
  policy: PolicySpec = leak,
): Promise<{ readonly episodes: readonly (readonly Episode[])[]; readonly notices: readonly string[] }> {
  const notices: string[] = [];
  const pool = await RolloutPool.start({
    environment: LEAKY,
    options: { openly: false },
    workers: 1,
    ...setup,
    // Not that of an engine that does not hold a heap to its limit.
    notice: (text) => text.startsWith('reset level') && notices.push(text),
  });
  const episodes: (readonly Episode[])[] = [];
  for (const batch of batches) episodes.push(await pool.run(batch, policy));
  await pool.close();
  return { episodes, notices };
}

test('the sample is one in a hundred, and follows from the seed', () => {
  const seeds = Array.from({ length: 50_000 }, (_, i) => `0/episode/${i}`);
  const share = seeds.filter(isSampled).length / seeds.length;
  expect(share).toBeGreaterThan(0.008);
  expect(share).toBeLessThan(0.012);
});

describe.each([
  ['thread', 2],
  ['process', 1],
] as const)('isolation: %s, workers: %i:', (isolation, workers) => {
  it('a world that leaks is found at the start, and every episode has a fresh context', async () => {
    const batches = [requestsOf(40), requestsOf(40, 40)];
    const { episodes, notices } = await rolled({ isolation, workers, options: { openly: true } }, batches);
    expect(notices).toEqual([expect.stringMatching(/^reset level state is not earned by leaky: episode reset-\d/)]);
    const expected = await rolled({ reset: 'context' }, batches);
    expect(JSON.stringify(episodes)).toBe(JSON.stringify(expected.episodes));
    expect(episodes.flat().every(({ steps }) => steps[1]?.calls[0]?.observation === '1 leaks')).toBe(true);
  });
});

test('one that leaks in secret is found by the sample: that run is run again, and those after it begin in fresh contexts', async () => {
  const before = requestsOf(sampledAt - 1);
  const batches = [before, requestsOf(20, sampledAt - 1), requestsOf(20, sampledAt + 19)];
  const { episodes, notices } = await rolled({}, batches);
  expect(notices).toEqual([expect.stringContaining(`episode e-${sampledAt} came to "leak`)]);
  expect(notices[0]).toContain('and to "leak 1" in a fresh context');
  const expected = await rolled({ reset: 'context' }, batches);
  expect(JSON.stringify(episodes.slice(1))).toBe(JSON.stringify(expected.episodes.slice(1)));
  // What was run before it was found is not made undone: this is what `isogym replay` tells.
  expect(JSON.stringify(episodes[0])).not.toBe(JSON.stringify(expected.episodes[0]));
});

test('a world that forgets keeps its level, and not a byte differs from fresh contexts', async () => {
  const batches = [requestsOf(20, sampledAt - 10)];
  const environment = (await import(DICE)).default;
  const specs: (() => PolicySpec)[] = [
    () => ({ kind: 'scripted', script: 'endless' }),
    () => ({ kind: 'tokens', policy: new FakeTokenPolicy(environment) }),
  ];
  for (const spec of specs) {
    const dice = { environment: DICE, options: {} };
    const { episodes, notices } = await rolled({ ...dice, reset: 'state', workers: 2 }, batches, spec());
    expect(notices).toEqual([]);
    const expected = await rolled({ ...dice, reset: 'context' }, batches, spec());
    expect(JSON.stringify(episodes)).toBe(JSON.stringify(expected.episodes));
  }
});
