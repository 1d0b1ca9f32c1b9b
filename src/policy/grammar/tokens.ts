/**
 * @module The token sequences that write a language's texts: each text by exactly one, the one that `Tokenizer.encode` gives it.
 *
 * Encoding takes the longest token at each point. So a sequence is the encoding of its text if and only if, after each
 * token, the bytes that follow never complete a longer token that begins where it began. A state is therefore the language's
 * state and the open trie nodes: where, in the trie of all tokens, the bytes since the beginning of each recent token have got to.
 *
 * No dead ends: a token is allowed only if some text goes on from there without completing an open node. That is enough, since
 * such a continuation has an encoding of its own, which cannot disturb the tokens before it. The open nodes only ever close while
 * looking for one, so the search is as deep as the longest word, and it is over as soon as all are closed (`Language` has no dead ends).
 */
import { IsogymError } from '../../records/errors.ts';
import type { Tokenizer, TrieNode } from '../tokenizer.ts';
import type { Language, Languages } from './language.ts';

/** Which tokens may follow. States are small integers, made as they are reached and kept. */
export interface Grammar {
  readonly start: number;
  /** Ascending token ids, at least one; `tokenizer.end` among them exactly where the text so far is whole. The same array at each call: read it, never write it. */
  allowed(state: number): Int32Array;
  /** The state after `id`. @throws TOKEN_NOT_ALLOWED; `end` has no state after it. */
  next(state: number, id: number): number;
}

interface State {
  readonly language: Language;
  readonly open: readonly TrieNode[];
  allowed: Int32Array | undefined;
  readonly next: Map<number, number>;
}

const NONE: readonly TrieNode[] = [];

export function tokenGrammar(languages: Languages, language: Language, tokenizer: Tokenizer): Grammar {
  const states: State[] = [];
  const numbers = new Map<string, number>();
  const goesOn = new Map<string, boolean>();

  function intern(of: Language, open: readonly TrieNode[]): number {
    const key = keyOf(of, open);
    let number = numbers.get(key);
    if (number === undefined) {
      number = states.push({ language: of, open, allowed: undefined, next: new Map() }) - 1;
      numbers.set(key, number);
    }
    return number;
  }

  function stateOf(number: number): State {
    const state = states[number];
    if (state === undefined)
      throw new IsogymError('UNKNOWN_STATE', `expected a state of this grammar, found ${number}`);
    return state;
  }

  /** Whether a text ends here, or goes on without completing an open node. */
  function canGoOn(from: Language, open: readonly TrieNode[]): boolean {
    if (open.length === 0 || from.nullable) return true;
    const key = keyOf(from, open);
    const known = goesOn.get(key);
    if (known !== undefined) return known;
    let found = false;
    for (let byte = 0; byte < 256 && !found; byte++) {
      const then = languages.step(from, byte);
      if (then === languages.empty) continue;
      const still = advance(open, byte);
      found = still !== undefined && canGoOn(then, still);
    }
    goesOn.set(key, found);
    return found;
  }

  /** Every allowed token below `node`, to which the bytes so far lead. */
  function collect(node: TrieNode, at: Language, open: readonly TrieNode[], ids: number[]): void {
    for (const [byte, child] of node.children) {
      const then = languages.step(at, byte);
      if (then === languages.empty) continue;
      const still = advance(open, byte);
      if (still === undefined) continue;
      if (child.token >= 0 && canGoOn(then, opened(still, child))) ids.push(child.token);
      if (child.children.size > 0) collect(child, then, still, ids);
    }
  }

  function follow(state: State, id: number): number | undefined {
    let node: TrieNode | undefined = tokenizer.trie;
    let at = state.language;
    let open: readonly TrieNode[] | undefined = state.open;
    for (const byte of tokenizer.bytesOf(id)) {
      node = node?.children.get(byte);
      at = languages.step(at, byte);
      open = open && advance(open, byte);
    }
    if (node?.token !== id || at === languages.empty || open === undefined) return undefined;
    const all = opened(open, node);
    return canGoOn(at, all) ? intern(at, all) : undefined;
  }

  return {
    start: intern(language, NONE),
    allowed(number) {
      const state = stateOf(number);
      if (state.allowed === undefined) {
        const ids: number[] = state.language.nullable ? [tokenizer.end] : [];
        collect(tokenizer.trie, state.language, state.open, ids);
        state.allowed = Int32Array.from(ids).sort();
      }
      return state.allowed;
    },
    next(number, id) {
      const state = stateOf(number);
      let next = state.next.get(id);
      if (next === undefined) {
        next = follow(state, id);
        if (next === undefined) {
          throw new IsogymError(
            'TOKEN_NOT_ALLOWED',
            `expected a token that state ${number} allows, found ${id} ${tokenizer.describe(id)}`,
          );
        }
        state.next.set(id, next);
      }
      return next;
    },
  };
}

/** The open nodes after one more byte, or undefined where it completes a token. */
function advance(open: readonly TrieNode[], byte: number): readonly TrieNode[] | undefined {
  if (open.length === 0) return open;
  const still: TrieNode[] = [];
  for (const node of open) {
    const child = node.children.get(byte);
    if (child === undefined) continue;
    if (child.token >= 0) return undefined;
    still.push(child);
  }
  return still.length === 0 ? NONE : still;
}

/** A longer token may still begin where this one began. */
function opened(open: readonly TrieNode[], node: TrieNode): readonly TrieNode[] {
  return node.children.size === 0 ? open : [...open, node];
}

function keyOf(language: Language, open: readonly TrieNode[]): string {
  let key = String(language.id);
  for (const node of open) key += ` ${node.index}`;
  return key;
}
