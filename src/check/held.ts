/** @module Checks of what is held: it reaches the verifier and nobody else. */
import type { Json, JsonObject } from '../records/json.ts';
import type { Task } from '../records/task.ts';
import { type CheckResult, failed, passed, short } from './result.ts';
import type { Trial } from './trial.ts';

const NAME = 'held';
/** Tasks that are given a canary to hold. */
const MARKED = 8;
const CANARY = 'isogym-canary-7f3a9c';

/**
 * Three looks. A canary in the place of everything held must be in no record of an episode, which is all that a policy or a
 * world can have had. What `public` says under the same name as `held` is told to all of them: in one task where it stands beside
 * it, in all of them where it stands further in, as one alone may be a coincidence. And the prompt may not tell more of
 * its own task's answer than of another's: a value that stands in it as often under other tasks is a coincidence.
 */
export async function checkHeld(trial: Trial, hasGrammar: boolean): Promise<CheckResult> {
  const { tasks, environment } = trial;
  const host = trial.host();
  const scripts = Object.keys(environment.scripts).map((script) => ({ kind: 'scripted', script }) as const);
  let episodes = 0;
  let observed = 0;
  for (const task of tasks.slice(0, MARKED)) {
    const marked: Task = { ...task, held: { answer: CANARY, more: [CANARY] } };
    for (const policy of [...(hasGrammar ? [{ kind: 'uniform' } as const] : []), ...scripts]) {
      const episode = await trial.episode(host, marked, policy);
      episodes++;
      if (JSON.stringify(episode).includes(CANARY)) {
        return failed(
          NAME,
          `task ${task.id}: what is held is in the record of its episode`,
          'This is a fault of isogym: please report it.',
        );
      }
      const seen = episode.steps.flatMap(({ calls }) => calls.map((call) => call.observation)).join('\n');
      if (tells(seen, task)) observed++;
    }
  }
  for (const task of tasks) {
    const key = toldTwice(task);
    if (key !== undefined) {
      return failed(
        NAME,
        `task ${task.id}: public.${key} is held.${key}`,
        'Leave it out of `public`: the world and every script can read that, and the verifier is given both.',
      );
    }
  }
  if (tasks.length > 4 && tasks.every(toldInside)) {
    return failed(
      NAME,
      `every task of ${tasks.length}: all that is held stands in public too, under the same names further in`,
      'Leave it out of `public`: the world and every script can read that, and the verifier is given both.',
    );
  }
  const own = tasks.filter((task, i) => tells(task.prompt, tasks[i] as Task)).length;
  const others =
    mean(
      tasks.map(
        (task, i) =>
          tasks.filter((other, j) => j !== i && tells(task.prompt, other)).length / Math.max(1, tasks.length - 1),
      ),
    ) * tasks.length;
  const [sample] = tasks.filter((task) => tells(task.prompt, task));
  // Three standard deviations of a binomial count and one more.
  const chance = others + 3 * Math.sqrt(others * Math.max(0, 1 - others / tasks.length)) + 1;
  if (own > chance && tasks.length > 4) {
    return failed(
      NAME,
      short(
        `the prompts of ${own} of ${tasks.length} tasks hold their answer, by chance ${others.toFixed(1)} would: task ${sample?.id}: ${JSON.stringify(sample?.prompt)}`,
      ),
      'Keep what only the verifier may know out of the prompt.',
    );
  }
  const prompts =
    own === 0 ? 'no prompt holds an answer' : `${own} prompts hold one, by chance ${others.toFixed(1)} would`;
  const shown =
    observed === 0 ? '' : `; observations of ${observed} hold the answer's own values, which tools may mean to show`;
  return passed(NAME, `a canary held in ${episodes} episodes is in none of their records; ${prompts}${shown}`);
}

/** A key that `public` and `held` have in common, with the same value; true, false and null say nothing. */
function toldTwice({ public: seen, held }: Task): string | undefined {
  if (!isObject(seen) || !isObject(held)) return undefined;
  return Object.keys(held).find(
    (key) =>
      typeof held[key] !== 'boolean' && held[key] !== null && JSON.stringify(seen[key]) === JSON.stringify(held[key]),
  );
}

/** Whether each word and number that is held stands in `public` under the name that it has there, at any depth; 7 and "7" are the same. */
function toldInside({ public: seen, held }: Task): boolean {
  const told = new Set(named(seen));
  const secrets = named(held);
  return secrets.length > 0 && secrets.every((one) => told.has(one));
}

/** Each word and number with the name that it stands under; the elements of an array have the array's. */
function named(value: Json, name = ''): readonly string[] {
  if (typeof value !== 'object' || value === null) return leaves(value).map((leaf) => JSON.stringify([name, leaf]));
  if (Array.isArray(value)) return value.flatMap((one) => named(one, name));
  return Object.entries(value).flatMap(([key, one]) => named(one, key));
}

/** Whether a text holds all the words and numbers of what a task holds back. */
function tells(text: string, { held }: Task): boolean {
  const values = leaves(held);
  return values.length > 0 && values.every((value) => text.includes(value));
}

function leaves(value: Json): readonly string[] {
  if (typeof value === 'string') return value === '' ? [] : [value];
  if (typeof value === 'number') return [String(value)];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(leaves);
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
