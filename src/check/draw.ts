/** @module Actions drawn from the grammar: what a policy that knows nothing could write, with the calls that they make. */
import type { Environment } from '../env/environment.ts';
import type { Inside } from '../env/inside.ts';
import type { Tool } from '../env/tool.ts';
import { actionGrammar, type Grammar } from '../policy/grammar/index.ts';
import type { Tokenizer } from '../policy/tokenizer.ts';
import { generator } from '../records/random.ts';
import type { Call } from './trial.ts';

/** Longest action that is drawn, in tokens: longer ones are thrown away, as are final answers. */
const MAX_TOKENS = 4096;
/** Draws for each call that is wanted. */
const ATTEMPTS = 20;

/**
 * Up to `count` different actions that call `tool`, as texts of its grammar: fewer where it has no more, or only very long ones.
 * @throws GRAMMAR_UNSUPPORTED
 */
export function drawTexts(
  environment: Environment,
  inside: Inside,
  tool: Tool,
  count: number,
  seed: string,
): readonly string[] {
  const grammar = actionGrammar({ ...environment, tools: [tool] }, inside.tokenizer);
  const random = generator(seed);
  const texts = new Set<string>();
  for (let attempt = 0; attempt < count * ATTEMPTS && texts.size < count; attempt++) {
    const text = drawn(grammar, inside.tokenizer, random);
    if (text !== undefined && inside.format.parse(text, 1).final === undefined) texts.add(text);
  }
  return [...texts];
}

function drawn(grammar: Grammar, tokenizer: Tokenizer, random: () => number): string | undefined {
  const ids: number[] = [];
  for (let state = grammar.start; ids.length < MAX_TOKENS; ) {
    const allowed = grammar.allowed(state);
    const id = allowed[Math.floor(random() * allowed.length)] as number;
    if (id === tokenizer.end) return tokenizer.decode(ids);
    ids.push(id);
    state = grammar.next(state, id);
  }
  return undefined;
}

/** The call that such a text makes; undefined where it cannot be read. */
export function callOf(inside: Inside, text: string): Call | undefined {
  const [call] = inside.format.parse(text, 1).calls;
  return call?.arguments == null ? undefined : { tool: call.name, arguments: call.arguments };
}

/** Whether the grammar admits a text, as one whole action. */
export function admits(grammar: Grammar, tokenizer: Tokenizer, text: string): boolean {
  let state = grammar.start;
  for (const id of tokenizer.encode(text)) {
    if (!grammar.allowed(state).includes(id)) return false;
    state = grammar.next(state, id);
  }
  return grammar.allowed(state).includes(tokenizer.end);
}
