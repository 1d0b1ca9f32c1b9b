/** @module Check of forks: a world forked in the midst of its calls goes on as it would have itself, above all where it declares a snapshot. */
import { IsogymError } from '../records/errors.ts';
import { type CheckResult, failed, passed, short, skipped } from './result.ts';
import { type Call, type Trial, written } from './trial.ts';

/** Forks that are made, spread over the calls. */
const FORKS = 8;

export function checkFork(trial: Trial, calls: readonly Call[]): CheckResult {
  const name = 'fork';
  const [task] = trial.tasks;
  if (task === undefined) return skipped(name, 'no task');
  const host = trial.host();
  const straight = trial.play(host, task, calls);
  // From a call that ran late or crashed on, there is no world to fork.
  const lost = straight.findIndex(({ states }) => states.includes('timeout') || states.includes('crashed'));
  const sound = lost < 0 ? calls.length : lost;
  if (sound === 0) return skipped(name, 'no calls to fork between');
  const places = [...new Set(Array.from({ length: FORKS }, (_, i) => Math.floor((i * sound) / FORKS)))];
  for (const at of places) {
    const world = trial.open(host, task);
    const run = trial.caller(world, task);
    for (const [i, call] of calls.slice(0, at).entries()) run(written(call, i));
    try {
      const fork = world.fork();
      world.close();
      const onwards = trial.caller(fork, task);
      for (let i = at; i < sound; i++) {
        const call = calls[i] as Call;
        const [expected, found] = [straight[i]?.observation, onwards(written(call, i)).observation];
        if (expected === found) continue;
        return failed(
          name,
          `task ${task.id}, forked after ${at} calls: call ${i + 1} (${call.tool}) gives ${short(JSON.stringify(found))}, without the fork ${short(JSON.stringify(expected))}`,
          'snapshot() must hold all that the tools read and change, and restore() must bring all of it back; without the two a fork runs the calls again.',
        );
      }
      fork.close();
    } catch (error) {
      if (!(error instanceof IsogymError)) throw error;
      return failed(name, short(`task ${task.id}, after ${at} calls: ${error.message}`), error.hint ?? '');
    }
  }
  return passed(name, `${places.length} forks between ${sound} calls go on as without`);
}
