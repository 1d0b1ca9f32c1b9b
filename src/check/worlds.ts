/** @module Checks of the world: what is left of an episode once the next begins, and closing. */
import type { ResetLevel } from '../env/environment.ts';
import { type CheckResult, failed, passed, short, skipped } from './result.ts';
import type { Call, Trial } from './trial.ts';

const LEVELS: readonly ResetLevel[] = ['state', 'context', 'isolate'];

/**
 * The same calls in the same tasks, one episode after the other, at each level of reset. A fresh isolate for each is what it
 * is measured by: nothing can be left in it. Only the environment's own level and those above it have to agree.
 */
export function checkReset(trial: Trial, callsOf: (task: number) => readonly Call[]): CheckResult {
  const name = 'reset';
  const { reset } = trial.environment;
  const order = [0, 1, 0, 2, 1, 0].filter((task) => task < trial.tasks.length);
  const seen = (level: ResetLevel) => {
    const host = trial.host(level);
    return order.map((task) =>
      trial
        .play(host, trial.tasks[task] as (typeof trial.tasks)[number], callsOf(task))
        .map((record) => record.observation),
    );
  };
  const fresh = seen('isolate');
  const calls = fresh.flat().length;
  if (calls === 0) return skipped(name, 'no call to compare');
  const again = order
    .map((task, i) => [task, i] as const)
    .find(([task, i]) => JSON.stringify(fresh[i]) !== JSON.stringify(fresh[order.indexOf(task)]));
  if (again !== undefined) {
    return failed(
      name,
      `task ${trial.tasks[again[0]]?.id}: the same calls give other observations in another fresh isolate`,
      'Take chance from `random`; see the check "same seed".',
    );
  }
  const leaks = LEVELS.slice(0, 2).flatMap((level) => {
    const found = seen(level);
    for (const [episode, task] of order.entries()) {
      const at = found[episode]?.findIndex((observation, i) => observation !== fresh[episode]?.[i]) ?? -1;
      if (at < 0) continue;
      const call = callsOf(task)[at];
      const text = `at level ${level} task ${trial.tasks[task]?.id}, call ${at + 1} (${call?.tool}): ${short(JSON.stringify(found[episode]?.[at]))}, fresh ${short(JSON.stringify(fresh[episode]?.[at]))}`;
      return [{ level, text }];
    }
    return [];
  });
  const owned = leaks.find(({ level }) => LEVELS.indexOf(level) >= LEVELS.indexOf(reset));
  if (owned !== undefined) {
    const next = LEVELS[LEVELS.indexOf(owned.level) + 1];
    return failed(
      name,
      `state leaks over a reset: ${owned.text}`,
      `Keep all state in what create() returns, or declare reset: '${next}'.`,
    );
  }
  const [weaker] = leaks;
  if (weaker !== undefined)
    return passed(
      name,
      `own level ${reset}: ${calls} observations as in a fresh isolate; below it state would leak: ${weaker.text}`,
    );
  return passed(name, `own level ${reset}: ${calls} observations the same at levels state, context and isolate`);
}

/** @param leaks whether a reset leaves state behind: then one episode differs from the next, however it was closed */
export function checkClose(trial: Trial, calls: readonly Call[], leaks: boolean): CheckResult {
  const name = 'close';
  const [task] = trial.tasks;
  const [tool] = trial.environment.tools;
  if (task === undefined) return passed(name, 'no task');
  const host = trial.host();
  const first = trial.play(host, task, calls);
  const world = trial.open(host, task);
  world.close();
  world.close();
  const late = tool === undefined ? 'crashed' : world.call(tool.name, '{}', 1000).status;
  const again = trial.play(host, task, calls);
  host.dispose();
  host.dispose();
  const hint = 'This is a fault of isogym: please report it with the environment.';
  if (late !== 'crashed') return failed(name, `a call after close came to ${late}`, hint);
  if (!leaks && JSON.stringify(first) !== JSON.stringify(again))
    return failed(name, 'an episode after a world was closed twice differs from one before', hint);
  return passed(
    name,
    `a world closed twice answers no more, ${leaks ? 'another opens' : 'the next one is as before'}, the host closes twice`,
  );
}
