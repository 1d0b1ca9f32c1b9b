/** @module The first look at an environment: whether its worlds can be opened at all, before hundreds of episodes wait for each that cannot. */
import { IsogymError } from '../records/errors.ts';
import { deriveSeed } from '../records/random.ts';
import { stopRule } from '../records/stop-reason.ts';
import type { Task } from '../records/task.ts';
import type { Rig } from './collect.ts';
import { groupRequests } from './collect.ts';

/** A world whose `create` never comes back costs 5 s an episode: so many are waited for. */
const EPISODES = 2;

/**
 * Runs the uniform policy on the first tasks. One world in many that cannot be opened is that episode's failure and no one else's;
 * where the first are all of that kind, the environment is broken and not the episodes.
 * @throws WORLDS_BROKEN where none of the first worlds could be opened
 */
export async function probe(rig: Rig, tasks: readonly Task[], seed: string, signal?: AbortSignal): Promise<void> {
  const requests = groupRequests(tasks.slice(0, EPISODES), 1, deriveSeed(seed, 'probe'), 0);
  const episodes = await rig.rollouts.run(requests, { kind: 'uniform' }, signal);
  signal?.throwIfAborted();
  const broken = episodes.filter(({ stop, steps }) => {
    const { boundary } = stopRule(stop);
    return steps.length === 0 && (boundary === 'environment' || boundary === 'sandbox');
  });
  const [first] = broken;
  if (first === undefined || broken.length < episodes.length) return;
  throw new IsogymError(
    'WORLDS_BROKEN',
    `expected the worlds of the first ${episodes.length} tasks to open, found that none does: task ${first.taskId}: ${first.stopDetail ?? first.stop}`,
    { hint: "Look at the environment's world module; isogym check ENVIRONMENT tries all of its parts." },
  );
}
