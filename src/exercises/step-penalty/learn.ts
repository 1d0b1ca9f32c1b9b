/** @module One run of the exercise, all in the calling thread: tabular REINFORCE from scratch at one penalty with one seed. A worker of the exercise's pool. */
import { importEnvironment } from '../../env/load.ts';
import { RolloutRunner } from '../../env/rollouts/rollout-runner.ts';
import type { PolicySpec } from '../../env/rollouts/rollouts.ts';
import { moduleUrl } from '../../io/modules.ts';
import { selectBackend } from '../../policy/backends/select.ts';
import { IsogymError } from '../../records/errors.ts';
import { deriveSeed, generator } from '../../records/random.ts';
import { agentOf } from '../../train/agent.ts';
import type { Config } from '../../train/config.ts';
import { evaluate } from '../../train/evaluate.ts';
import { learnerFor } from '../../train/learner.ts';
import { reinforce } from '../../train/loop.ts';
import { mean } from '../../train/statistics.ts';
import { buildTaskSet } from '../../train/task-set.ts';
import { importVerifier } from '../../verifiers/load.ts';
import { VerifierRunner } from '../../verifiers/runner.ts';
import { type Behaviour, behaviourOf } from './behaviour.ts';
import { LOOKUP_ACTIONS, type TabularProbabilities } from './optimum.ts';

/** What one run learnt, on the held-out tasks, acting as in training (sampled): the greedy policy would hide what it has not given up. */
export interface Learnt {
  readonly seed: number;
  readonly return: number;
  readonly success: number;
  /** Share of the held-out episodes that did each. */
  readonly shares: Readonly<Partial<Record<Behaviour, number>>>;
  /** What most of them did. */
  readonly behaviour: Behaviour;
  readonly policy: TabularProbabilities;
}

export default async function learn(config: Config): Promise<Learnt> {
  await selectBackend('cpu');
  const environmentUrl = moduleUrl('environment', config.environment.module).href;
  const environment = await importEnvironment(environmentUrl);
  const verifier = await importVerifier(moduleUrl('verifier', config.verifier.module).href);
  const options = environment.options.parse(config.environment.options);
  const { reset } = config.environment;
  const rollouts = await RolloutRunner.create({ environment: environmentUrl, options, ...(reset && { reset }) });
  const verifiers = await VerifierRunner.create(verifier);
  const agent = agentOf(config.policy, environment);
  const tasks = await buildTaskSet(environment, options, config.tasks);
  const seed = String(config.seed);
  const learner = learnerFor(agent, config, { weights: agent.model.init(generator(deriveSeed(seed, 'init'))) });
  const rig = { rollouts, verifiers, verifier, stepPenalty: config.reward.stepPenalty };
  try {
    await reinforce({
      config,
      rig,
      agent,
      learner,
      tasks: tasks.train,
      from: 0,
      now: () => 0,
      commit: () => undefined,
    });
    const policy = await agent.policy(learner.weights, learner.version, 'sampled');
    const heldOut = tasks.heldOut.slice(0, config.evaluation.tasks);
    const { evaluation, trajectories } = await evaluate(rig, heldOut, policy, 'sampled', seed);
    const counts = new Map<Behaviour, number>();
    for (const trajectory of trajectories) {
      const behaviour = behaviourOf(trajectory);
      counts.set(behaviour, (counts.get(behaviour) ?? 0) + 1);
    }
    const ranked = [...counts].sort(([, a], [, b]) => b - a);
    return {
      seed: config.seed,
      return: mean(evaluation.outcomes.map((o) => o.return)),
      success: mean(evaluation.outcomes.map((o) => Number(o.success))),
      shares: Object.fromEntries(ranked.map(([behaviour, count]) => [behaviour, count / trajectories.length])),
      behaviour: ranked[0]?.[0] ?? 'other',
      policy: probabilitiesOf(policy),
    };
  } finally {
    learner.dispose();
    await Promise.all([rollouts.close(), verifiers.close()]);
  }
}

function probabilitiesOf(policy: PolicySpec): TabularProbabilities {
  if (policy.kind !== 'tabular') throw new IsogymError('INTERNAL', 'the exercise trains a tabular policy');
  const { table, temperature } = policy;
  const actions = LOOKUP_ACTIONS.length;
  return Array.from({ length: table.length / actions }, (_, state) => {
    const logits = table.subarray(state * actions, (state + 1) * actions);
    const weights = Array.from(logits, (logit) => Math.exp((logit - Math.max(...logits)) / temperature));
    const sum = weights.reduce((a, b) => a + b, 0);
    return weights.map((weight) => weight / sum);
  });
}
