/** @module The groups of an iteration: rolled out, stragglers stopped where enough have finished, and what the batch came to in figures. */
import type { PolicySpec } from '../env/rollouts.ts';
import { type BatchFigures, DEFAULT_SCHEDULE } from '../env/schedule.ts';
import type { Task } from '../records/task.ts';
import type { Trajectory } from '../records/trajectory.ts';
import { collect, groupRequests, type Rig } from './collect.ts';
import type { Config } from './config.ts';

export interface Rolled {
  readonly trajectories: readonly Trajectory[];
  /** Null where the policy acts in the workers. */
  readonly batch: BatchFigures | null;
}

/**
 * `group.size` rollouts of each task, and `rollouts.extra` beyond: as soon as `group.size` of a group are usable and have
 * ended, its others are stopped as stragglers. Who ends in the same moment is kept, so a group may have more than its size.
 */
export async function rollGroups(of: {
  readonly rig: Rig;
  readonly config: Pick<Config, 'seed' | 'group' | 'rollouts'>;
  readonly tasks: readonly Task[];
  readonly iteration: number;
  readonly policy: PolicySpec;
  readonly signal?: AbortSignal | undefined;
}): Promise<Rolled> {
  const { rig, config, tasks, iteration, policy, signal } = of;
  const { size } = config.group;
  const { extra } = config.rollouts;
  const requests = groupRequests(tasks, size + extra, String(config.seed), iteration);
  let batch: BatchFigures | null = null;
  const schedule = {
    ...(rig.schedule ?? DEFAULT_SCHEDULE),
    ...(extra > 0 ? { enough: size } : {}),
    observe: (figures: BatchFigures) => {
      batch = figures;
    },
  };
  const trajectories = await collect({ ...rig, schedule }, requests, tasks, policy, signal);
  return { trajectories, batch };
}
