/** @module The groups of an iteration: begun or carried over, rolled out, and given when they are complete; what the batch came to in figures. */
import type { PolicySpec, RolloutRequest } from '../env/rollouts/rollouts.ts';
import { type BatchFigures, DEFAULT_SCHEDULE } from '../env/rollouts/schedule.ts';
import { IsogymError } from '../records/errors.ts';
import { deriveSeed } from '../records/random.ts';
import { publicPart, type Task } from '../records/task.ts';
import type { Episode, Trajectory } from '../records/trajectory.ts';
import { groupRequests, judgeAll, type Rig, scheduled } from './collect.ts';
import type { Config } from './config.ts';
import { drawFrom } from './task-set.ts';

/** What one iteration leaves to the next, as plain data: it is part of a checkpoint. */
export interface Carried {
  /** Tasks that were drawn so far: where the next draw begins. */
  readonly drawn: number;
  /** Episodes in whose midst the iteration ended. */
  readonly suspended: readonly Episode[];
  /** Episodes that have ended, of groups that have not. */
  readonly ended: readonly Trajectory[];
}

export const NOTHING_CARRIED: Carried = { drawn: 0, suspended: [], ended: [] };

export interface Rolled {
  /** Of complete groups. */
  readonly trajectories: readonly Trajectory[];
  readonly carried: Carried;
  /** Null where the policy acts in the workers. */
  readonly batch: BatchFigures | null;
}

/**
 * `batch.groups` groups are in the air: those that were carried over, and new ones. Without `rollouts.budget` all of them end.
 * With it, who is not done when the ticks are spent is suspended; in the next iteration its actions are taken again in a fresh
 * world of its seed, as they were sampled, and it goes on under the new weights. So what it comes to follows from its record.
 *
 * `rollouts.extra` more of each group are begun; as soon as `group.size` are usable and have ended, the others are stopped as
 * stragglers. Who ends in the same moment is kept, so a group may have more than its size.
 */
export async function rollGroups(of: {
  readonly rig: Rig;
  readonly config: Pick<Config, 'seed' | 'batch' | 'group' | 'rollouts'>;
  readonly tasks: readonly Task[];
  readonly iteration: number;
  readonly carried: Carried;
  readonly policy: PolicySpec;
  readonly signal?: AbortSignal | undefined;
}): Promise<Rolled> {
  const { rig, config, tasks, iteration, carried, policy, signal } = of;
  const seed = String(config.seed);
  const { extra, budget } = config.rollouts;
  const { size } = config.group;
  const inTheAir = groupsOf([...carried.suspended, ...carried.ended]);
  const count = config.batch.groups - inTheAir.size;
  const drawn = drawFrom(tasks, deriveSeed(seed, 'task-order'), carried.drawn, count);
  const requests = [
    ...carried.suspended.map((episode) => goingOn(episode, tasks)),
    ...groupRequests(drawn, size + extra, seed, iteration),
  ];

  let batch: BatchFigures | null = null;
  const schedule = {
    ...(rig.schedule ?? DEFAULT_SCHEDULE),
    ...(extra > 0 ? { enough: size } : {}),
    ...(budget === undefined ? {} : { budget }),
    observe: (figures: BatchFigures) => {
      batch = figures;
    },
  };
  const episodes = await rig.rollouts.run(requests, scheduled(policy, { ...rig, schedule }), signal);
  signal?.throwIfAborted();

  const suspended = episodes.filter(({ stop }) => stop === 'suspended');
  const judged = await judgeAll(
    rig,
    episodes.filter(({ stop }) => stop !== 'suspended'),
    tasks,
  );
  const ended = [...carried.ended, ...judged];
  const incomplete = groupsOf(suspended);
  const trajectories = ended
    .filter(({ group }) => !incomplete.has(group))
    .map((t) => (t.iteration === iteration ? t : { ...t, learntIn: iteration }));
  const still = ended.filter(({ group }) => incomplete.has(group));
  return { trajectories, carried: { drawn: carried.drawn + count, suspended, ended: still }, batch };
}

function groupsOf(episodes: readonly Episode[]): ReadonlySet<string> {
  return new Set(episodes.map(({ group }) => group));
}

/** The request of an episode that was suspended. @throws RECORD_BROKEN */
function goingOn(parent: Episode, tasks: readonly Task[]): RolloutRequest {
  const { id, group, iteration, rollout, seed } = parent;
  const task = tasks.find((one) => one.id === parent.taskId);
  if (task === undefined) {
    throw new IsogymError(
      'RECORD_BROKEN',
      `expected a task of the run for episode ${id}, which was carried over, found ${JSON.stringify(parent.taskId)}`,
      { hint: "Delete the run's latest checkpoint to go on from the one before, or begin a new run." },
    );
  }
  const fork = { parent, step: parent.steps.length, goesOn: true };
  return { id, group, task: publicPart(task), iteration, rollout, seed, fork };
}
