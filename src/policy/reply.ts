/** @module From what a policy wrote, in tokens or in words, to its reply. */
import type { ScriptedAction } from '../env/environment.ts';
import type { Format } from '../env/format.ts';
import type { Action } from '../records/action.ts';
import type { Step } from '../records/trajectory.ts';
import type { PolicyReply } from './policy.ts';
import type { TokenReply } from './token-policy.ts';
import type { Tokenizer } from './tokenizer.ts';

/** Reads sampled tokens as an action. One that was cut off is text alone: it has no calls and no final answer. */
export function replyInTokens(
  reply: TokenReply,
  steps: readonly Step[],
  tokenizer: Tokenizer,
  format: Format,
): PolicyReply {
  const text = tokenizer.decode(reply.ids);
  return { ...reply, action: reply.cutOff ? { text, calls: [] } : format.parse(text, nextCall(steps)) };
}

/** A text that was not sampled: encoded once, here, the end token added, without logprobs. */
export function replyInText(
  text: string,
  steps: readonly Step[],
  maxTokens: number,
  format: Format,
  tokenizer: Tokenizer,
): PolicyReply {
  const ids = tokenizer.encodeAction(text);
  if (ids.length <= maxTokens)
    return { action: format.parse(text, nextCall(steps)), ids, logprobs: null, cutOff: false };
  const kept = ids.slice(0, maxTokens);
  return { action: { text: tokenizer.decode(kept), calls: [] }, ids: kept, logprobs: null, cutOff: true };
}

/** An action given in words, as the policy's text and read back, like any other. */
export function actionInWords(action: ScriptedAction, steps: readonly Step[], format: Format): Action {
  return format.parse(format.action(action), nextCall(steps));
}

/** Number of the next call id of the episode, from 1. */
function nextCall(steps: readonly Step[]): number {
  let next = 1;
  for (let i = 0; i < steps.length; i++) next += steps[i]?.action.calls.length ?? 0;
  return next;
}
