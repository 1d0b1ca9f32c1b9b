/** @module The only place that reads a clock. What it says goes to timings.jsonl and to a person's eyes, never into a result. */

/** Milliseconds since some fixed moment of this process; never runs backwards. */
export function now(): number {
  return performance.now();
}

export interface Stopwatch {
  /** Seconds since it was started. */
  seconds(): number;
}

export function stopwatch(): Stopwatch {
  const start = now();
  return { seconds: () => (now() - start) / 1000 };
}
