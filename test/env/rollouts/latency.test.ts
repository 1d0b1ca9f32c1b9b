import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { importEnvironment } from '../../../src/env/load.ts';
import { RolloutPool } from '../../../src/env/rollouts/pool.ts';
import { RolloutRunner } from '../../../src/env/rollouts/rollout-runner.ts';
import type { BatchFigures, Schedule } from '../../../src/env/rollouts/schedule.ts';
import { generator } from '../../../src/records/random.ts';
import type { Episode } from '../../../src/records/trajectory.ts';
import { FakeTokenPolicy, requestsOf } from '../../fixtures/rollouts.ts';

const LAGGARD = new URL('../../fixtures/laggard/index.ts', import.meta.url).href;
const laggard = await importEnvironment(LAGGARD);
const requests = requestsOf(laggard, 9, 6).slice(2);
const schedule: Schedule = { live: 13, deadline: 16, enough: 4 };

/** A fake policy whose ticks take from no time to some milliseconds. */
class SlowPolicy extends FakeTokenPolicy {
  readonly #latency;

  constructor(seed: string) {
    super(laggard);
    this.#latency = generator(seed);
  }

  override async tick(...joining: Parameters<FakeTokenPolicy['tick']>) {
    const ms = Math.floor(this.#latency() ** 6 * 8);
    if (ms > 0) await sleep(ms);
    return super.tick(...joining);
  }
}

/** Suspends whoever lives after six ticks, then lets those go on under a policy of another version. */
async function runInTwo(engine: Pick<RolloutPool, 'run'>) {
  const first = new FakeTokenPolicy(laggard);
  const half = await engine.run(requests, { kind: 'tokens', policy: first, schedule: { live: 20, budget: 6 } });
  const suspended = half.filter(({ stop }) => stop === 'suspended');
  const going = suspended.map((parent) => ({
    ...(requests.find(({ id }) => id === parent.id) as (typeof requests)[number]),
    fork: { parent, step: parent.steps.length, goesOn: true },
  }));
  const second = Object.assign(new FakeTokenPolicy(laggard), { version: 4 });
  const whole = await engine.run(going, { kind: 'tokens', policy: second });
  return { half, suspended, whole, asked: second.batches.flat() };
}

async function run(engine: Pick<RolloutPool, 'run'>, seed: string) {
  const policy = new SlowPolicy(seed);
  const seen: BatchFigures[] = [];
  const observe = (figures: BatchFigures) => seen.push(figures);
  const episodes = await engine.run(requests, { kind: 'tokens', policy, schedule: { ...schedule, observe } });
  return { episodes, bytes: JSON.stringify(episodes), batches: policy.batches, figures: seen };
}

it('case 24: slow calls and slow ticks change no byte over 1 to 8 workers, in threads and in processes, with deadlines and stragglers', async () => {
  const alone = await RolloutRunner.create({ environment: LAGGARD, options: {}, reset: 'context' });
  const expected = await run(alone, 'alone');
  await alone.close();
  const stops = new Set(expected.episodes.map(({ stop }: Episode) => stop));
  for (const stop of ['final', 'deadline', 'straggler'] as const) expect(stops).toContain(stop);
  for (const [isolation, workers] of [
    ['thread', 2],
    ['thread', 8],
    ['process', 2],
  ] as const) {
    const setup = { environment: LAGGARD, options: {}, reset: 'context', workers, isolation } as const;
    const pool = await RolloutPool.start(setup);
    const found = await run(pool, `${isolation}/${workers}`);
    await pool.close();
    // Not `toBe`: a difference of kilobytes helps nobody.
    expect(found.bytes === expected.bytes, `${workers} ${isolation}`).toBe(true);
    expect(found.batches).toEqual(expected.batches);
    expect(found.figures).toEqual(expected.figures);
  }
}, 120_000);

it('an episode that was suspended goes on from what it has done, as it was sampled, in threads and in processes alike', async () => {
  const alone = await RolloutRunner.create({ environment: LAGGARD, options: {}, reset: 'context' });
  const { half, suspended, whole, asked } = await runInTwo(alone);
  await alone.close();
  expect(suspended.length).toBeGreaterThan(10);
  expect(half.length - suspended.length).toBeGreaterThan(6);
  expect(suspended.some(({ steps }) => steps.length > 1)).toBe(true);
  for (const [i, { steps, segments }] of suspended.entries()) {
    const later = whole[i] as Episode;
    expect(later.steps.slice(0, steps.length)).toEqual(steps);
    expect(later.forkedFrom).toBe(undefined);
    const end = steps.at(-1)?.tokens.end ?? 0;
    for (const per of ['ids', 'actionMask', 'logprobs', 'policyVersion'] as const) {
      expect(later.segments[0]?.[per].slice(0, end)).toEqual(segments[0]?.[per].slice(0, end));
    }
    const after = later.segments[0]?.policyVersion.slice(end).filter((version) => version !== null);
    expect(new Set(after)).toEqual(new Set([4]));
    // The new policy is given the whole context once, and draws by a seed of its own.
    const [request] = asked.filter(({ episodeId }) => episodeId === later.id);
    expect(request?.newIds).toEqual(later.segments[0]?.ids.slice(0, request?.newIds.length));
    expect(request?.newIds.length).toBeGreaterThan(end);
    expect(request?.seed).toBe(`${later.seed}/policy${steps.length === 0 ? '' : `/${steps.length}`}`);
  }
  const pool = await RolloutPool.start({
    environment: LAGGARD,
    options: {},
    reset: 'context',
    workers: 2,
    isolation: 'process',
  });
  const there = await runInTwo(pool);
  await pool.close();
  expect(JSON.stringify([there.half, there.whole]) === JSON.stringify([half, whole])).toBe(true);
}, 60_000);
