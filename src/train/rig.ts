/** @module All that a run works with, opened from its config: modules, tasks, agent, and the workers that roll out and verify. */
import { availableParallelism } from 'node:os';
import type { Environment } from '../env/environment.ts';
import { importEnvironment } from '../env/load.ts';
import { RolloutPool } from '../env/pool.ts';
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
  readonly environment: Environment;
  readonly agent: Agent;
  readonly tasks: TaskSet;
  close(): Promise<void>;
}

/** @throws what a broken module, unknown options or an unfit policy throw; nothing is left running then */
export async function openRig(config: Config, where?: Where): Promise<OpenRig> {
  const environmentUrl = moduleUrl('environment', config.environment.module).href;
  const verifierUrl = moduleUrl('verifier', config.verifier.module).href;
  const environment = await importEnvironment(environmentUrl);
  const verifier = await importVerifier(verifierUrl);
  const options = parseOptions(environment.options, config.environment.options, where);
  const agent = agentOf(config.policy, environment, config.replay);
  const tasks = buildTaskSet(environment, options, config.tasks);
  const workers = config.workers === 'auto' ? availableParallelism() : config.workers;
  const { maxSteps, reset, isolation } = config.environment;
  const rollouts = await RolloutPool.start({
    environment: environmentUrl,
    options,
    workers,
    ...(maxSteps === undefined ? {} : { maxSteps }),
    ...(reset === undefined ? {} : { reset }),
    ...(isolation === undefined ? {} : { isolation }),
  });
  try {
    const verifiers = await VerifierPool.start({ verifier: verifierUrl, workers: 1 });
    const close = async () => {
      await Promise.all([rollouts.close(), verifiers.close()]);
      agent.close();
    };
    return { rollouts, verifiers, verifier, stepPenalty: config.reward.stepPenalty, environment, agent, tasks, close };
  } catch (error) {
    await rollouts.close();
    throw error;
  }
}
