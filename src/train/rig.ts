/** @module All that a run works with, opened from its config: modules, tasks, agent, and the workers that roll out and verify. */
import { availableParallelism } from 'node:os';
import type { Environment, ResetLevel } from '../env/environment.ts';
import { importEnvironment } from '../env/load.ts';
import { RolloutPool } from '../env/rollouts/pool.ts';
import type { Schedule } from '../env/rollouts/schedule.ts';
import { now } from '../io/clock.ts';
import { parseOptions, type Where } from '../io/config-problems.ts';
import { moduleUrl } from '../io/modules.ts';
import { importVerifier } from '../verifiers/load.ts';
import { VerifierPool } from '../verifiers/pool.ts';
import { type Agent, agentOf } from './agent.ts';
import type { Rig } from './collect.ts';
import type { Config } from './config.ts';
import { buildTaskSet, type TaskSet } from './task-set.ts';

export type { Where } from '../io/config-problems.ts';

export interface OpenRig extends Rig {
  readonly rollouts: RolloutPool;
  readonly environment: Environment;
  readonly agent: Agent;
  readonly tasks: TaskSet;
  close(): Promise<void>;
}

/** An environment and its tasks, as a config names them. */
export interface Stage {
  readonly url: string;
  readonly environment: Environment;
  readonly options: unknown;
  readonly tasks: TaskSet;
}

/** @throws what a broken module, unknown options or an unfit task set throw */
export async function openStage(config: Config, where?: Where, signal?: AbortSignal): Promise<Stage> {
  const url = moduleUrl('environment', config.environment.module).href;
  const environment = await importEnvironment(url);
  const options = parseOptions(environment.options, config.environment.options, where);
  return { url, environment, options, tasks: await buildTaskSet(environment, options, config.tasks, signal) };
}

/** The workers that roll out on a stage. */
export function startRollouts(
  config: Config,
  { url, options }: Stage,
  o: { readonly reset?: ResetLevel; readonly notice?: (text: string) => void } = {},
): Promise<RolloutPool> {
  const workers = config.workers === 'auto' ? availableParallelism() : config.workers;
  const { maxSteps, isolation } = config.environment;
  const level = o.reset ?? config.environment.reset;
  return RolloutPool.start({
    environment: url,
    options,
    workers,
    ...(maxSteps === undefined ? {} : { maxSteps }),
    ...(level === undefined ? {} : { reset: level }),
    ...(isolation === undefined ? {} : { isolation }),
    ...(o.notice === undefined ? {} : { notice: o.notice }),
  });
}

/** @param o.notice told what a person should know of how it runs. @throws what a broken module, unknown options or an unfit policy throw; nothing is left running then */
export async function openRig(
  config: Config,
  o: {
    readonly where?: Where | undefined;
    readonly notice?: (text: string) => void;
    readonly signal?: AbortSignal | undefined;
  } = {},
): Promise<OpenRig> {
  const { where, notice, signal } = o;
  const verifierUrl = moduleUrl('verifier', config.verifier.module).href;
  const stage = await openStage(config, where, signal);
  const { environment, tasks } = stage;
  const verifier = await importVerifier(verifierUrl);
  const agent = agentOf(config.policy, environment, config.replay);
  const rollouts = await startRollouts(config, stage, notice === undefined ? {} : { notice });
  try {
    const verifiers = await VerifierPool.start({ verifier: verifierUrl, workers: 1 });
    const close = async () => {
      await Promise.all([rollouts.close(), verifiers.close()]);
      agent.close();
    };
    const schedule = scheduleOf(config.rollouts);
    const { stepPenalty } = config.reward;
    return { rollouts, verifiers, verifier, stepPenalty, schedule, environment, agent, tasks, close };
  } catch (error) {
    await rollouts.close();
    throw error;
  }
}

function scheduleOf({ live, deadline, mode, deadlineSeconds }: Config['rollouts']): Schedule {
  const throughput = deadlineSeconds === undefined ? {} : { deadlineMs: 1000 * deadlineSeconds };
  return {
    live,
    now,
    ...(deadline === undefined ? {} : { deadline }),
    ...(mode === 'throughput' ? { throughput } : {}),
  };
}
