/** @module Checks of the tasks: a function of seed and index, and different ones. */
import type { Environment } from '../env/environment.ts';
import { makeTasks } from '../env/make-tasks.ts';
import type { Task } from '../records/task.ts';
import { type CheckResult, failed, passed } from './result.ts';

const NAME = 'tasks';

/** The same tasks whenever and in whatever order they are asked for, each with an id of its own. */
export function checkTasks<Options>(
  environment: Environment<Options>,
  options: Options,
  seed: string,
  tasks: readonly Task[],
): CheckResult {
  const one = (index: number) => makeTasks(environment, { seed, from: index, count: 1, options })[0] as Task;
  for (const index of [...tasks.keys()].reverse()) {
    const again = one(index);
    if (JSON.stringify(again) === JSON.stringify(tasks[index])) continue;
    const part = (['id', 'prompt', 'public', 'held'] as const).find(
      (key) => JSON.stringify(again[key]) !== JSON.stringify(tasks[index]?.[key]),
    );
    return failed(
      NAME,
      `task ${index} of one seed was asked for twice and differs in its ${part}`,
      'Derive all chance in task() from its arguments: generator(deriveSeed(seed, name, index)), no Math.random, no clock, no counter.',
    );
  }
  const ids = new Set(tasks.map(({ id }) => id));
  if (ids.size < tasks.length) {
    return failed(
      NAME,
      `${tasks.length} tasks have ${ids.size} different ids`,
      'Give every index an id of its own, e.g. the name and the index: the split into train and held-out goes by it.',
    );
  }
  return passed(
    NAME,
    `${tasks.length} tasks, asked for twice in different orders: the same, each with an id of its own`,
  );
}
