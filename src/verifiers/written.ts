/** @module What a verifier is shown, as the JSON in which it travels to the isolate: written once, by whoever holds the episodes. */
import { messageOf } from '../records/errors.ts';
import { type StopReason, stopRule } from '../records/stop-reason.ts';
import type { Score } from '../records/trajectory.ts';
import type { Verifier, VerifierInput } from './verifier.ts';

/** Inputs that a verifier can be shown, [inputs] each. Two lists of texts: nothing crosses a thread cheaper. */
export interface WrittenInputs {
  readonly stops: readonly StopReason[];
  /** JSON of `taskId`, `stop` and what the verifier reads. */
  readonly texts: readonly string[];
}

/** A score that is no score, with its reason. */
export function unscored(reason: string): Score {
  return { score: null, success: false, reasons: [reason] };
}

/**
 * The inputs that have to be scored, and how the scores of all of them follow from theirs: one that ended in a way which has no
 * score, or holds what JSON cannot express, is unscored whatever the verifier says.
 */
export function written(
  inputs: readonly VerifierInput[],
  reads: Verifier['reads'],
): WrittenInputs & { scores(of: readonly Score[]): readonly Score[] } {
  const stops: StopReason[] = [];
  const texts: string[] = [];
  const already = new Map<number, Score>();
  for (const [i, input] of inputs.entries()) {
    const { scored, meaning } = stopRule(input.stop);
    try {
      if (scored) texts.push(JSON.stringify(shown(input, reads)));
      else already.set(i, unscored(`not scored: ${meaning}`));
    } catch (error) {
      already.set(i, unscored(`the verifier cannot be run: ${messageOf(error)}`));
    }
    if (!already.has(i)) stops.push(input.stop);
  }
  const scores = (of: readonly Score[]) => {
    let next = 0;
    return inputs.map((_, i) => already.get(i) ?? (of[next++] as Score));
  };
  return { stops, texts, scores };
}

function shown(input: VerifierInput, reads: Verifier['reads']): Partial<VerifierInput> {
  if (reads === undefined) return input;
  const part: { [key: string]: unknown } = { taskId: input.taskId, stop: input.stop };
  for (const key of reads) part[key] = input[key];
  return part;
}
