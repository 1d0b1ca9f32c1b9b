/** @module The scripted policy: acts in words, as a function of what has been seen. The standard double for a model. */
import type { Script, ScriptedAction } from '../env/environment.ts';
import type { Format } from '../env/format.ts';
import type { Policy, TaskOf } from './policy.ts';
import { replyInText } from './reply.ts';
import type { Tokenizer } from './tokenizer.ts';

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
      const text = format.action(script({ task: taskOf(episodeId), steps, random }));
      return replyInText(text, steps, maxTokens, format, tokenizer);
    },
  };
}

/** The actions in order; after the last of them, the last observation as the final answer (the empty text where there is none). */
export function scriptFromList(actions: readonly ScriptedAction[]): Script {
  return ({ steps }) => actions[steps.length] ?? { final: steps.at(-1)?.calls.at(-1)?.observation ?? '' };
}
