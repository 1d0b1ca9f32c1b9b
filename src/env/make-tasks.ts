/** @module Tasks out of an environment's `task`: bounded in time, looked at to their depth, and from then on nobody's to change. */
import { shown } from '../records/declaration.ts';
import { IsogymError, inputError, messageOf } from '../records/errors.ts';
import { frozen, type Json, jsonProblem } from '../records/json.ts';
import type { Task } from '../records/task.ts';
import { bounded } from './bounded.ts';
import type { Environment } from './environment.ts';

/** Time for one block of tasks: a function that never comes back would hold the whole process, Ctrl-C included. */
const TIMEOUT_MS = 30_000;

/**
 * Tasks `from` … `from + count − 1` of the task set that `seed` fixes: deep-frozen copies, so that what the author's code does
 * with its objects later changes no task.
 * @throws TASK_BROKEN where `task` throws, takes longer than `timeoutMs` for all of them, or gives what is no task: everything
 * that is wrong with the first such one
 */
export function makeTasks<Options>(
  environment: Pick<Environment<Options>, 'name' | 'task'>,
  of: { readonly seed: string; readonly from: number; readonly count: number; readonly options: Options },
  timeoutMs = TIMEOUT_MS,
): readonly Task[] {
  const { seed, from, count, options } = of;
  const refuse = (problem: string) =>
    inputError(
      'TASK_BROKEN',
      `environment ${environment.name}: ${problem}`,
      "Look at the environment's `task` function.",
    );
  const tasks: Task[] = [];
  let index = from;
  try {
    bounded(() => {
      for (; index < from + count; index++) {
        const task: unknown = environment.task(seed, index, options);
        const problems = problemsOf(task);
        if (problems.length > 0) throw inputError('TASK_BROKEN', `task ${index}: ${problems.join('; ')}`);
        tasks.push(copyOf(task as Task));
      }
    }, timeoutMs);
  } catch (error) {
    if (error instanceof IsogymError && error.code === 'TASK_BROKEN') throw refuse(error.message);
    if (error instanceof IsogymError && error.code === 'TOO_SLOW') {
      throw refuse(
        `expected tasks ${from} to ${from + count - 1} within ${timeoutMs} ms, found task ${index} not done by then`,
      );
    }
    throw refuse(`expected task ${index}, found that task() throws: ${messageOf(error)}`);
  }
  return tasks;
}

function problemsOf(task: unknown): readonly string[] {
  if (typeof task !== 'object' || task === null || Array.isArray(task) || 'then' in task) {
    const found = typeof task === 'object' && task !== null && 'then' in task ? 'a promise' : shown(task);
    return [`expected an object { id, prompt, public, held }, found ${found}`];
  }
  const { id, prompt, public: seen, held } = task as Readonly<Record<string, unknown>>;
  const texts = Object.entries({ id, prompt }).flatMap(([key, value]) =>
    typeof value === 'string' && (key === 'prompt' || value !== '')
      ? []
      : [`${key}: expected a text, found ${shown(value)}`],
  );
  return [...texts, ...[jsonProblem(seen, 'public'), jsonProblem(held, 'held')].filter((p) => p !== undefined)];
}

function copyOf({ id, prompt, public: seen, held }: Task): Task {
  const copy = (value: Json): Json => frozen(JSON.parse(JSON.stringify(value)) as Json);
  return Object.freeze({ id, prompt, public: copy(seen), held: copy(held) });
}
