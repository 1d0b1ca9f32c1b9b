import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { importEnvironment } from '../../src/env/load.ts';
import { RolloutPool } from '../../src/env/pool.ts';
import { RolloutRunner } from '../../src/env/rollout-runner.ts';
import type { BatchFigures, Schedule } from '../../src/env/schedule.ts';
import { generator } from '../../src/records/random.ts';
import type { Episode } from '../../src/records/trajectory.ts';
import { FakeTokenPolicy, requestsOf } from '../fixtures/rollouts.ts';

const LAGGARD = new URL('../fixtures/laggard/index.ts', import.meta.url).href;
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
