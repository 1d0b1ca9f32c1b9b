/** @module The task set: which tasks are trained on, which are held out, and in which order they come. */
import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Environment } from '../env/environment.ts';
import { makeTasks } from '../env/make-tasks.ts';
import { inputError } from '../records/errors.ts';
import { deriveSeed, generator, shuffled } from '../records/random.ts';
import type { Task } from '../records/task.ts';

export interface TaskSet {
  readonly train: readonly Task[];
  readonly heldOut: readonly Task[];
}

/** Tasks that are asked for at once. */
const BLOCK = 64;
/** After so many the event loop has its turn, and with it Ctrl-C. */
const TURN = 16 * BLOCK;

/** A number in [0, 1) that depends on the id alone (SHA-256), so that the split survives reordering, and growth in the same proportion. */
export function splitKey(id: string): number {
  return createHash('sha256').update(id).digest().readUInt32BE(0) / 2 ** 32;
}

/**
 * Takes the environment's tasks 0, 1, 2, … and sorts each by the hash of its id until both sides are full.
 * @param sizes how many tasks each side has; the share held out is heldOut / (train + heldOut)
 * @param signal asked between blocks, as a set of a million takes half a minute
 * @throws TASK_BROKEN where one is no task; DUPLICATE_TASK where two of them have one id: both would be one task, and a finite set would be gone through for ever
 */
export async function buildTaskSet<Options>(
  environment: Environment<Options>,
  options: Options,
  sizes: { readonly train: number; readonly heldOut: number; readonly seed: number },
  signal?: AbortSignal,
): Promise<TaskSet> {
  const share = sizes.heldOut / (sizes.train + sizes.heldOut);
  const seed = deriveSeed(String(sizes.seed), 'tasks');
  const train: Task[] = [];
  const heldOut: Task[] = [];
  const seen = new Map<string, number>();
  const sort = (task: Task, index: number) => {
    const before = seen.get(task.id);
    if (before !== undefined) {
      throw inputError(
        'DUPLICATE_TASK',
        `environment ${environment.name}: expected tasks with different ids, found ${JSON.stringify(task.id)} for index ${before} and for ${index}`,
        `Ask for fewer tasks (tasks.train, tasks.heldOut), or let task() make a new one for every index.`,
      );
    }
    seen.set(task.id, index);
    const [side, size] = splitKey(task.id) < share ? [heldOut, sizes.heldOut] : [train, sizes.train];
    if (side.length < size) side.push(task);
  };
  // Never more at once than are still to come at least: a finite function is asked for none that nobody needs.
  const missing = () => sizes.train - train.length + sizes.heldOut - heldOut.length;
  for (let from = 0; missing() > 0; ) {
    if (from % TURN === 0) await nextTurn();
    signal?.throwIfAborted();
    const block = makeTasks(environment, { seed, from, count: Math.min(missing(), BLOCK), options });
    block.forEach((task, i) => {
      sort(task, from + i);
    });
    from += block.length;
  }
  return { train, heldOut };
}

/**
 * The `count` items of step `step`. Every pass over the items is one fresh shuffle, and where in it a step stands follows from its
 * number alone, so a resumed run needs no cursor. An item comes twice in one step only where a pass ends in it.
 */
export function drawOfStep<T>(items: readonly T[], seed: string, step: number, count: number): readonly T[] {
  return drawFrom(items, seed, step * count, count);
}

/** The same, from a place on. */
export function drawFrom<T>(items: readonly T[], seed: string, from: number, count: number): readonly T[] {
  const passes = new Map<number, readonly T[]>();
  return Array.from({ length: count }, (_, i) => {
    const position = from + i;
    const pass = Math.floor(position / items.length);
    let order = passes.get(pass);
    if (order === undefined) {
      order = shuffled(items, generator(deriveSeed(seed, pass)));
      passes.set(pass, order);
    }
    return order[position % items.length] as T;
  });
}
