/** @module The policies that benches run, by name: an environment's scripts, and learners as they are before the first step. */
import type { Environment } from '../env/environment.ts';
import type { PolicySpec } from '../env/rollouts.ts';
import { selectBackend } from '../policy/backends/select.ts';
import { generator } from '../records/random.ts';
import { agentOf } from '../train/agent.ts';
import { onDevice } from '../train/eager-steps.ts';

/** The size of the main job. */
const TRANSFORMER = {
  kind: 'transformer',
  temperature: 1,
  layers: 2,
  width: 64,
  heads: 4,
  kvHeads: 2,
  headWidth: 16,
  hidden: 172,
  ropeBase: 10_000,
} as const;

/** @throws POLICY_UNFIT, UNKNOWN_SCRIPT when they are run */
export async function benchPolicies(
  names: readonly string[],
  environment: Environment,
): Promise<{ readonly name: string; readonly spec: PolicySpec }[]> {
  const policies: { readonly name: string; readonly spec: PolicySpec }[] = [];
  for (const name of names) policies.push({ name, spec: await specOf(name, environment) });
  return policies;
}

async function specOf(name: string, environment: Environment): Promise<PolicySpec> {
  if (name === 'uniform') return { kind: 'uniform' };
  if (name !== 'tabular' && name !== 'transformer') return { kind: 'scripted', script: name };
  await selectBackend('auto');
  const agent = agentOf(name === 'tabular' ? { kind: 'tabular', temperature: 1 } : TRANSFORMER, environment);
  return agent.policy(onDevice(agent.model.init(generator('bench'))), 0, 'sampled');
}
