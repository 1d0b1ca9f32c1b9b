/**
 * @module How far this thread has come, in memory that a watchdog can read while the thread is held up inside an isolate.
 * Nobody watches unless `watchFrom` was called; the marks cost nanoseconds either way.
 */

/** Places in the shared memory. `COUNT` moves with every mark, `LIMIT` is the bound [ms] of what runs now (0: nothing has one), `CANCEL` the number of the last task that is cancelled. */
export const COUNT = 0;
export const LIMIT = 1;
export const CANCEL = 2;
export const PLACES = 3;

let marks: Int32Array = new Int32Array(PLACES);

/** From now on marks are made in this memory. */
export function watchFrom(shared: Int32Array): void {
  marks = shared;
}

/** An operation begins that its own timeout should end. Gives the bound that it lies in, for `leave`. */
export function enter(limitMs: number): number {
  const outer = Atomics.load(marks, LIMIT);
  Atomics.store(marks, LIMIT, Math.ceil(limitMs));
  Atomics.add(marks, COUNT, 1);
  return outer;
}

/** The operation has ended, and the one around it goes on. */
export function leave(outerMs: number): void {
  Atomics.store(marks, LIMIT, outerMs);
  Atomics.add(marks, COUNT, 1);
}

/** Something has been done. */
export function mark(): void {
  Atomics.add(marks, COUNT, 1);
}
