/** @module The uniform policy: every token that the grammar allows is equally likely. What "random" means in a table of results. */
import type { Format } from '../env/format.ts';
import { IsogymError } from '../records/errors.ts';
import type { Grammar } from './grammar/index.ts';
import type { Policy } from './policy.ts';
import { replyInTokens } from './reply.ts';
import type { Tokenizer } from './tokenizer.ts';

/** Each token's logprob is −ln n, n being the number of allowed tokens. */
export function uniformPolicy(grammar: Grammar, format: Format, tokenizer: Tokenizer): Policy {
  return {
    name: 'uniform',
    version: 0,
    tokens: 'text',
    request({ steps, maxTokens, random }) {
      const ids: number[] = [];
      const logprobs: number[] = [];
      let state = grammar.start;
      while (ids.length < maxTokens && ids.at(-1) !== tokenizer.end) {
        const allowed = grammar.allowed(state);
        const id = allowed[Math.floor(random() * allowed.length)];
        if (id === undefined) throw new IsogymError('NOTHING_ALLOWED', `the grammar allows no token in state ${state}`);
        ids.push(id);
        logprobs.push(-Math.log(allowed.length));
        if (id !== tokenizer.end) state = grammar.next(state, id);
      }
      const cutOff = ids.at(-1) !== tokenizer.end;
      return replyInTokens({ ids, logprobs, cutOff }, steps, tokenizer, format);
    },
  };
}
