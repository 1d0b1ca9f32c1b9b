/** @module Rollouts, then their judgement: episodes are run without what is held, and scored with it once they have ended. */
import type { PolicySpec, RolloutEngine, RolloutRequest } from '../env/rollouts/rollouts.ts';
import type { Schedule } from '../env/rollouts/schedule.ts';
import { deriveSeed } from '../records/random.ts';
import { publicPart, type Task } from '../records/task.ts';
import type { Episode, Score, Trajectory } from '../records/trajectory.ts';
import { canaryInput, checkCanary } from '../verifiers/canary.ts';
import type { VerifierEngine } from '../verifiers/runner.ts';
import type { Verifier, VerifierInput } from '../verifiers/verifier.ts';
import { judge } from './returns.ts';

/** Where episodes are run and judged. */
export interface Rig {
  readonly rollouts: RolloutEngine;
  readonly verifiers: VerifierEngine;
  readonly verifier: Verifier;
  readonly stepPenalty: number;
  /** How the episodes of a token policy share its batch. */
  readonly schedule?: Schedule;
}

/** `size` rollouts of each task; each task is one group, named by its place, so that a task drawn twice makes two groups. */
export function groupRequests(
  tasks: readonly Task[],
  size: number,
  seed: string,
  iteration: number,
): readonly RolloutRequest[] {
  return tasks.flatMap((task, place) => {
    const group = `${iteration}.${place}`;
    return Array.from({ length: size }, (_, rollout) => ({
      id: `${group}.${rollout}`,
      group,
      task: publicPart(task),
      iteration,
      rollout,
      seed: deriveSeed(seed, 'episode', iteration, place, task.id, rollout),
    }));
  });
}

/** Runs the requests and judges what comes of them, the first while others still run. @throws VERIFIER_COMPROMISED */
export async function collect(
  rig: Rig,
  requests: readonly RolloutRequest[],
  tasks: readonly Task[],
  policy: PolicySpec,
  signal?: AbortSignal,
): Promise<readonly Trajectory[]> {
  const byId = tasksById(tasks);
  const batches: Promise<readonly Trajectory[]>[] = [];
  /** Where each stands in all batches. */
  const places = new Map<Episode, number>();
  const begin = (episodes: readonly Episode[]) => {
    const batch = judgeThese(rig, episodes, byId);
    // Awaited below, unless the run itself fails first.
    batch.catch(() => {});
    batches.push(batch);
    for (const episode of episodes) places.set(episode, places.size);
  };
  const episodes = await rig.rollouts.run(requests, scheduled(policy, rig), signal, begin);
  signal?.throwIfAborted();
  const others = episodes.filter((episode) => !places.has(episode));
  if (others.length > 0) begin(others);
  const judged = (await Promise.all(batches)).flat();
  return episodes.map((episode) => judged[places.get(episode) as number] as Trajectory);
}

/** Judges episodes that have ended, a known-wrong canary with every batch. @throws VERIFIER_COMPROMISED */
export function judgeAll(
  rig: Rig,
  episodes: readonly Episode[],
  tasks: readonly Task[],
): Promise<readonly Trajectory[]> {
  return judgeThese(rig, episodes, tasksById(tasks));
}

async function judgeThese(
  rig: Rig,
  episodes: readonly Episode[],
  tasks: ReadonlyMap<string, Task>,
): Promise<readonly Trajectory[]> {
  const inputs = episodes.map((episode) =>
    verifierInput(episode, tasks.get(episode.taskId) as Task, rig.verifier.reads),
  );
  const [first] = inputs;
  if (first === undefined) return [];
  const scores = await rig.verifiers.score([...inputs, canaryInput(first, rig.verifier)]);
  const verdicts = scores.slice(0, -1);
  for (const canary of scores.slice(-1)) checkCanary(canary);
  return episodes.map((episode, i) => judge(episode, verdicts[i] as Score, rig.stepPenalty));
}

function tasksById(tasks: readonly Task[]): ReadonlyMap<string, Task> {
  return new Map(tasks.map((task) => [task.id, task]));
}

/**
 * What a verifier is shown of an episode.
 * @param reads of the verifier: without `steps` among them there are none, and an episode whose steps are not made yet keeps them so
 */
export function verifierInput(episode: Episode, task: Task, reads?: Verifier['reads']): VerifierInput {
  return {
    taskId: task.id,
    prompt: task.prompt,
    public: task.public,
    held: task.held,
    steps: reads?.includes('steps') === false ? [] : episode.steps,
    stop: episode.stop,
    final: episode.final,
  };
}

/** A token policy with the rig's schedule. */
export function scheduled(policy: PolicySpec, { schedule }: Rig): PolicySpec {
  return policy.kind === 'tokens' && schedule !== undefined ? { ...policy, schedule } : policy;
}
