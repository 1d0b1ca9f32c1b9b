/** @module The policies that benches run, by name: an environment's scripts, and learners as they are before the first step. */
import type { Environment } from '../env/environment.ts';
import type { PolicySpec } from '../env/rollouts/rollouts.ts';
import { type Backend, describeBackend, selectBackend } from '../policy/backends/select.ts';
import { inputError } from '../records/errors.ts';
import { nearest } from '../records/nearest.ts';
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

export interface BenchPolicies {
  readonly policies: readonly { readonly name: string; readonly spec: PolicySpec }[];
  /** Where learners compute; undefined where there is none among them. */
  readonly backend: Backend | undefined;
}

/** @param note told which backend was taken. @throws UNKNOWN_SCRIPT; POLICY_UNFIT when they are run */
export async function benchPolicies(
  names: readonly string[],
  environment: Environment,
  note: (text: string) => void,
): Promise<BenchPolicies> {
  for (const name of names) checkName(name, environment);
  const backend = names.some(isLearner) ? await selectBackend('auto') : undefined;
  if (backend !== undefined) note(describeBackend(backend));
  const policies: BenchPolicies['policies'][number][] = [];
  for (const name of names) policies.push({ name, spec: await specOf(name, environment) });
  return { policies, backend };
}

/** Before a backend is brought up for the others. */
function checkName(name: string, { name: environment, scripts }: Environment): void {
  const known = [...Object.keys(scripts), 'uniform', 'tabular', 'transformer'];
  if (known.includes(name)) return;
  const close = nearest(name, known);
  throw inputError(
    'UNKNOWN_SCRIPT',
    `expected a script of ${environment} or another policy (${known.join(', ')}), found ${JSON.stringify(name)}`,
    close === undefined ? undefined : `did you mean ${close}?`,
  );
}

function isLearner(name: string): name is 'tabular' | 'transformer' {
  return name === 'tabular' || name === 'transformer';
}

async function specOf(name: string, environment: Environment): Promise<PolicySpec> {
  if (name === 'uniform') return { kind: 'uniform' };
  if (!isLearner(name)) return { kind: 'scripted', script: name };
  const agent = agentOf(name === 'tabular' ? { kind: 'tabular', temperature: 1 } : TRANSFORMER, environment);
  return agent.policy(onDevice(agent.model.init(generator('bench'))), 0, 'sampled');
}
