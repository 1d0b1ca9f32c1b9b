/** @module The scripted policy: acts in words, as a function of what has been seen. The standard double for a model. */
import type { Script, ScriptedAction } from '../env/environment.ts';
import type { Format } from '../env/format.ts';
import type { Policy, TaskOf } from './policy.ts';
import { actionInWords } from './reply.ts';
import type { Tokenizer } from './tokenizer.ts';

/** Its text is encoded once, here, the end token added; it samples nothing, so there are no logprobs. */
export function scriptedPolicy(
  name: string,
  script: Script,
  format: Format,
  tokenizer: Tokenizer,
  taskOf: TaskOf,
): Policy {
  return {
    name: `scripted:${name}`,
    version: 0,
    tokens: 'text',
    request({ episodeId, steps, random, maxTokens }) {
      const action = actionInWords(script({ task: taskOf(episodeId), steps, random }), steps, format);
      const ids = [...tokenizer.encode(action.text), tokenizer.end];
      if (ids.length <= maxTokens) return { action, ids, logprobs: null, cutOff: false };
      const kept = ids.slice(0, maxTokens);
      return { action: { text: tokenizer.decode(kept), calls: [] }, ids: kept, logprobs: null, cutOff: true };
    },
  };
}

/** The actions in order; after the last of them, the last observation as the final answer (the empty text where there is none). */
export function scriptFromList(actions: readonly ScriptedAction[]): Script {
  return ({ steps }) => actions[steps.length] ?? { final: steps.at(-1)?.calls.at(-1)?.observation ?? '' };
}
