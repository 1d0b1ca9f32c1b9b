/** @module Attacks on a pool of one worker in a process, in the midst of calm siblings. */
import { expect } from 'vitest';
import { RolloutPool } from '../../../src/env/rollouts/pool.ts';
import type { RolloutRequest } from '../../../src/env/rollouts/rollouts.ts';
import type { Episode } from '../../../src/records/trajectory.ts';
import { requestOf, requestsOf } from '../../fixtures/rollouts.ts';
import type { Attack } from './attacks.ts';
import hostile, { type Armed } from './environment.ts';

const ENVIRONMENT = new URL('./environment.ts', import.meta.url).href;
const MIXED = { kind: 'scripted', script: 'mixed' } as const;

/** A pool, and what the siblings come to in it when nobody attacks. */
export class Struck {
  readonly #pool: RolloutPool;
  readonly #siblings = requestsOf(hostile, 4);
  #calm = '';

  private constructor(pool: RolloutPool) {
    this.#pool = pool;
  }

  static async start(): Promise<Struck> {
    const struck = new Struck(
      await RolloutPool.start({
        environment: ENVIRONMENT,
        options: {},
        workers: 1,
        host: { graceMs: 150, outsideMs: 2500, recycleAfter: 1_000_000 },
      }),
    );
    struck.#calm = await struck.#bytes();
    return struck;
  }

  /** All in one batch and one host, between their siblings, which must be as they are without them. */
  async by(...attacks: readonly Attack[]): Promise<readonly Episode[]> {
    const [first, second, ...others] = this.#siblings;
    const requests = [first!, second!, ...attacks.map(armed), ...others];
    const episodes = await this.#pool.run(requests, MIXED);
    const siblings = episodes.filter((_, i) => i < 2 || i >= 2 + attacks.length);
    expect(bytesOf(siblings) === this.#calm, 'the siblings are as they are without it').toBe(true);
    return episodes.slice(2, 2 + attacks.length);
  }

  /** The next batch is as the first. */
  async expectCalm(): Promise<void> {
    expect((await this.#bytes()) === this.#calm).toBe(true);
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  async #bytes(): Promise<string> {
    return bytesOf(await this.#pool.run(this.#siblings, MIXED));
  }
}

/** What the policy saw, and that nothing of this machine or moment stands in it. */
export function expectBecame(episode: Episode, { becomes }: Attack): void {
  expect(seen(episode).slice(0, 5000)).toMatch(becomes);
  // No path of this machine and no number that differs from run to run.
  expect(episode.stopDetail ?? '').not.toMatch(/\/|0x|\bpid\b/);
}

function bytesOf(episodes: readonly Episode[]): string {
  return episodes.map((episode) => JSON.stringify(episode)).join('\n');
}

function armed({ name, code, call, input }: Attack): RolloutRequest {
  const attack: Armed = {
    ...(code === undefined ? {} : { code }),
    ...(input === undefined ? {} : { input }),
    ...call,
  };
  return requestOf({ id: `attack: ${name}`, prompt: 'Attack.', public: { attack } });
}

function seen({ stop, failure, steps }: Episode): string {
  if (stop === 'sandbox-failure') return `${stop}: ${failure}`;
  return stop === 'final' ? (steps[0]?.calls[0]?.observation ?? '') : stop;
}
