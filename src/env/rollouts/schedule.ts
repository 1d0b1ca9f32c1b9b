/** @module How the episodes of a token policy share its batch, and what came of it in figures. Ticks are counted; what a clock says is told apart. */
import type { StopReason } from '../../records/stop-reason.ts';

/** Why the batcher ends an episode. */
export type HaltReason = Extract<StopReason, 'deadline' | 'late' | 'straggler' | 'suspended'>;

/** In place of tokens: the episode is over. */
export interface Halt {
  readonly halt: HaltReason;
  readonly detail: string;
}

export interface Schedule {
  /** Episodes that are live at once, at most; the others wait in the order of the requests. */
  readonly live: number;
  /** Ticks that an episode may live for. Absent: no bound beyond the environment's own limits. */
  readonly deadline?: number;
  /** Usable episodes of a group after which its others are stopped. Absent: all are waited for. */
  readonly enough?: number;
  /** Ticks after which nobody joins any more, once a group is complete: who still lives is suspended after the action that it writes. */
  readonly budget?: number;
  /** Lets join who is ready, whatever the others owe: full batches, and results that depend on who was faster. */
  readonly throughput?: {
    /** Time that an episode may live for [ms]; needs `now`. */
    readonly deadlineMs?: number;
  };
  /** A clock [ms]: for `throughput`, and for figures. */
  readonly now?: () => number;
  readonly observe?: (figures: BatchFigures) => void;
}

/** As many as in a config that says nothing. */
export const DEFAULT_SCHEDULE: Schedule = { live: 512 };

export interface BatchFigures {
  readonly ticks: number;
  /** Rows that were written, summed over the ticks. */
  readonly rowTicks: number;
  /** `rowTicks` over what they would have been had every tick had as many rows as may live at once; null without ticks. */
  readonly fill: number | null;
  /** By the clock; 0 without one. `waitingMs`: no row was written, as requests were owed. `stragglingMs`: nobody was queued, and at most a quarter of the rows were left. */
  readonly ms: number;
  readonly waitingMs: number;
  readonly stragglingMs: number;
}

export class BatchTally {
  readonly #now: () => number;
  readonly #most: number;
  readonly #start: number;
  #ticks = 0;
  #rowTicks = 0;
  #waitingMs = 0;
  #stragglingMs = 0;

  constructor({ now, live }: Schedule, episodes: number) {
    this.#now = now ?? (() => 0);
    this.#most = Math.min(live, episodes);
    this.#start = this.#now();
  }

  get ticks(): number {
    return this.#ticks;
  }

  async waiting(work: () => Promise<void>): Promise<void> {
    const start = this.#now();
    await work();
    this.#waitingMs += this.#now() - start;
  }

  async tick<T>(rows: number, last: boolean, work: () => Promise<T>): Promise<T> {
    const start = this.#now();
    this.#ticks++;
    this.#rowTicks += rows;
    try {
      return await work();
    } finally {
      if (last && 4 * rows <= this.#most) this.#stragglingMs += this.#now() - start;
    }
  }

  figures(): BatchFigures {
    const full = this.#ticks * this.#most;
    return {
      ticks: this.#ticks,
      rowTicks: this.#rowTicks,
      fill: full === 0 ? null : this.#rowTicks / full,
      ms: this.#now() - this.#start,
      waitingMs: this.#waitingMs,
      stragglingMs: this.#stragglingMs,
    };
  }
}
