/** @module The canary: an answer known to be wrong, scored in every batch. A verifier that passes it would train the policy on noise. */
import { IsogymError } from '../records/errors.ts';
import type { Score } from '../records/trajectory.ts';
import type { Verifier, VerifierInput } from './verifier.ts';

/** The same episode, had it ended with `verifier.canary` as its final answer. */
export function canaryInput(input: VerifierInput, verifier: Pick<Verifier, 'canary'>): VerifierInput {
  const final = verifier.canary;
  // The right answer must not stand in the steps either, for verifiers that look there.
  const steps = input.steps.map((step) =>
    step.action.final === undefined ? step : { ...step, action: { ...step.action, text: final, final } },
  );
  return { ...input, steps, final, stop: 'final' };
}

/** @throws VERIFIER_COMPROMISED where the canary's score is a success. */
export function checkCanary(score: Score): void {
  if (!score.success) return;
  throw new IsogymError(
    'VERIFIER_COMPROMISED',
    `Expected the verifier to reject an answer that is known to be wrong, found it scored ${score.score} (${score.reasons.join('; ') || 'no reasons'}).`,
    {
      hint: "Look at the verifier's source, its `success` threshold and its `canary`; nothing that it scored can be trusted.",
    },
  );
}
