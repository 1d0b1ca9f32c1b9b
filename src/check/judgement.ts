/** @module Checks of the verifier on the environment's own episodes: the oracle succeeds, and what is known to be wrong does not. */
import type { Task } from '../records/task.ts';
import type { Episode, Score } from '../records/trajectory.ts';
import { canaryInput } from '../verifiers/canary.ts';
import type { VerifierEngine } from '../verifiers/runner.ts';
import type { Verifier, VerifierInput } from '../verifiers/verifier.ts';
import { type CheckResult, failed, passed, short, skipped } from './result.ts';
import type { Trial } from './trial.ts';

export interface Bench {
  readonly verifier: Verifier;
  readonly engine: VerifierEngine;
}

const NO_VERIFIER = 'no verifier was named';

export async function checkOracle(
  trial: Trial,
  oracle: readonly Episode[] | undefined,
  bench: Bench | undefined,
): Promise<CheckResult> {
  const name = 'oracle';
  if (oracle === undefined) return skipped(name, 'no script is called oracle');
  const unfinished = oracle.find((episode) => episode.stop !== 'final');
  if (unfinished !== undefined)
    return failed(
      name,
      short(`task ${unfinished.taskId}: ${unfinished.stop}, ${unfinished.stopDetail}`),
      'The oracle must end every task with a final answer.',
    );
  if (bench === undefined)
    return skipped(name, `${oracle.length} episodes end with a final answer; ${NO_VERIFIER} to judge them`);
  const inputs = oracle.map((episode, i) => inputOf(episode, trial.tasks[i] as Task));
  const scores = await bench.engine.score(inputs);
  const again = await bench.engine.score(inputs);
  if (JSON.stringify(scores) !== JSON.stringify(again))
    return failed(
      name,
      'the verifier scores the same episodes otherwise a second time',
      "Let it depend on its input alone, and keep nothing between scores (or declare reset: 'context').",
    );
  const wrong = scores.findIndex((score) => !score.success);
  if (wrong >= 0) {
    const { score, reasons } = scores[wrong] as Score;
    const solved = scores.filter((one) => one.success).length;
    return failed(
      name,
      short(
        `${solved} of ${scores.length} tasks solved; task ${oracle[wrong]?.taskId}: ${oracle[wrong]?.final} scores ${score ?? 'nothing'}: ${reasons.join('; ') || 'no reason'}`,
      ),
      'Let the oracle and the verifier agree on what is right; a verifier that throws leaves the episode unscored.',
    );
  }
  const steps = oracle.reduce((sum, episode) => sum + episode.steps.length, 0) / oracle.length;
  return passed(
    name,
    `${scores.length} of ${scores.length} tasks solved by the verifier, ${steps.toFixed(1)} steps each, scored twice alike`,
  );
}

/** The canary, no answer, and the right answers of other tasks. */
export async function checkVerifier(
  trial: Trial,
  oracle: readonly Episode[] | undefined,
  bench: Bench | undefined,
): Promise<CheckResult> {
  const name = 'verifier';
  if (bench === undefined) return skipped(name, NO_VERIFIER);
  if (oracle === undefined) return skipped(name, 'no script is called oracle: nothing to judge');
  const { engine, verifier } = bench;
  const inputs = oracle.map((episode, i) => inputOf(episode, trial.tasks[i] as Task));
  const canary = (await engine.score(inputs.map((input) => canaryInput(input, verifier)))).findIndex(
    (score) => score.success,
  );
  if (canary >= 0)
    return failed(
      name,
      `task ${inputs[canary]?.taskId}: the canary ${JSON.stringify(verifier.canary)} is a success`,
      'Let the verifier refuse it, or declare a canary that is wrong for every task.',
    );
  const unanswered = inputs.map((input): VerifierInput => ({ ...input, final: null, stop: 'max-steps' }));
  const none = await engine.score(unanswered);
  const unscored = none.findIndex((score) => score.score === null);
  if (unscored >= 0)
    return failed(
      name,
      short(
        `task ${inputs[unscored]?.taskId}: an episode without a final answer has no score: ${none[unscored]?.reasons.join('; ')}`,
      ),
      'Give it a score, usually 0: `final` is null where the policy never answered.',
    );
  const swapped = inputs.flatMap((input, i) => {
    const other = inputs[(i + 1) % inputs.length];
    if (other === undefined || JSON.stringify(other.held) === JSON.stringify(input.held) || other.final === input.final)
      return [];
    return [withFinal(input, other.final ?? '')];
  });
  const fooled = (await engine.score(swapped)).filter((score) => score.success).length;
  const seen = `refuses the canary on ${inputs.length} tasks, scores an episode without an answer, and takes ${fooled} of ${swapped.length} answers of other tasks`;
  if (swapped.length >= 4 && fooled === swapped.length)
    return failed(name, seen, 'It takes any answer of the right form: let it compare with what is held.');
  return passed(name, seen);
}

export function inputOf(episode: Episode, task: Task): VerifierInput {
  const { id: taskId, prompt, public: seen, held } = task;
  return { taskId, prompt, public: seen, held, steps: episode.steps, stop: episode.stop, final: episode.final };
}

/** The same episode, had it ended with another answer. */
function withFinal(input: VerifierInput, final: string): VerifierInput {
  return canaryInput(input, { canary: final });
}
