/** @module The policy of given texts: writes them one after another, for a look at what would be if. */
import type { Format } from '../env/format.ts';
import type { Policy } from './policy.ts';
import { replyInText } from './reply.ts';
import type { Tokenizer } from './tokenizer.ts';

/**
 * Each text as a policy could write it, well formed or not. Fails where they end.
 * @param from the step of an episode that the first of them is for
 */
export function textsPolicy(
  texts: readonly string[],
  from: (episodeId: string) => number,
  format: Format,
  tokenizer: Tokenizer,
): Policy {
  return {
    name: 'texts',
    version: 0,
    tokens: 'text',
    request({ episodeId, steps, maxTokens }) {
      const text = texts[steps.length - from(episodeId)];
      if (text === undefined) throw new Error(`the ${texts.length} given texts end here`);
      return replyInText(text, steps, maxTokens, format, tokenizer);
    },
  };
}
