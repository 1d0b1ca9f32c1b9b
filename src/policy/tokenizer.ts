/** @module The tokenizer: words over bytes, greedy longest match. Lossless for every JavaScript string; it learns nothing and normalises nothing. */
import { IsogymError, inputError } from '../records/errors.ts';
import { KnownTexts } from './known-texts.ts';

/** A node of the byte trie over all tokens. */
export interface TrieNode {
  /** Unique in its trie. */
  readonly index: number;
  /** The token whose bytes lead here, or −1. */
  token: number;
  readonly children: Map<number, TrieNode>;
}

const END = 256;
const utf8 = new TextEncoder();
const fromUtf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * Ids 0–255 are the bytes, 256 is `end`, the words follow in the order given. Text becomes WTF-8 bytes
 * (UTF-8, in which a surrogate without its partner is three bytes; a pair is always one sequence of four), and bytes become the
 * longest token that matches at each point. Words may contain each other. A word of one byte stands in for that byte's
 * own id, which `encode` then never gives.
 */
export class Tokenizer {
  /** Number of ids: 257 + words. */
  readonly size: number;
  /** Ends an action. It is no text: `encode` never gives it, `decode` gives nothing for it. */
  readonly end: number = END;
  /** Of the longest token [bytes]: no action has more UTF-16 code units than that for each of its tokens. */
  readonly longest: number;
  /** Every token that `encode` can give, by its bytes. Read it, never write it. */
  readonly trie: TrieNode;
  readonly #bytes: readonly Uint8Array[];
  readonly #known = new KnownTexts((text) => Object.freeze(this.#encoded(text)));
  readonly #actions = new KnownTexts((text) => Object.freeze([...this.encode(text), END]));

  /** @throws INVALID_WORDS where a word is empty or given twice. */
  constructor(words: readonly string[]) {
    const bytes: Uint8Array[] = Array.from({ length: END }, (_, byte) => Uint8Array.of(byte));
    bytes.push(new Uint8Array(0));
    const seen = new Map<string, number>();
    for (const [index, word] of words.entries()) {
      if (word === '') throw invalidWords(`words[${index}] is empty`, 'leave it out');
      const first = seen.get(word);
      if (first !== undefined) {
        throw invalidWords(`words[${index}] repeats words[${first}], ${JSON.stringify(word)}`, 'leave one of them out');
      }
      seen.set(word, index);
      bytes.push(toBytes(word));
    }
    this.#bytes = bytes;
    this.size = bytes.length;
    this.longest = bytes.reduce((most, { length }) => Math.max(most, length), 0);
    this.trie = trieOf(bytes);
  }

  /** The ids of `text`; never contains `end`. */
  encode(text: string): readonly number[] {
    return this.#known.of(text);
  }

  /** The ids of an action: those of its text, and `end`. */
  encodeAction(text: string): readonly number[] {
    return this.#actions.of(text);
  }

  #encoded(text: string): number[] {
    const bytes = toBytes(text);
    const ids: number[] = [];
    for (let at = 0; at < bytes.length; ) {
      let node: TrieNode | undefined = this.trie;
      let matched = -1;
      let next = at;
      for (let i = at; i < bytes.length; ) {
        node = node.children.get(bytes[i++] as number);
        if (node === undefined) break;
        if (node.token >= 0) {
          matched = node.token;
          next = i;
        }
      }
      ids.push(matched);
      at = next;
    }
    return ids;
  }

  /**
   * The text of `ids`: `decode(encode(text)) === text` for every string. Never throws on sampled ids: bytes that are no WTF-8
   * become U+FFFD (one for each maximal invalid part, as TextDecoder does), so such a text does not encode to the same ids.
   * @throws UNKNOWN_TOKEN for an id outside [0, size).
   */
  decode(ids: readonly number[]): string {
    let length = 0;
    for (const id of ids) length += this.bytesOf(id).length;
    const bytes = new Uint8Array(length);
    let at = 0;
    for (const id of ids) {
      const sequence = this.bytesOf(id);
      bytes.set(sequence, at);
      at += sequence.length;
    }
    return fromBytes(bytes);
  }

  /** The bytes of one id; none for `end`. @throws UNKNOWN_TOKEN for an id outside [0, size). */
  bytesOf(id: number): Uint8Array {
    const bytes = this.#bytes[id];
    if (bytes === undefined) {
      throw new IsogymError('UNKNOWN_TOKEN', `expected a token id in [0, ${this.size}), found ${id}`);
    }
    return bytes;
  }

  /** One id for people: `"lookup "`, `<end>`, or `<0xE4>` for a part of a character. */
  describe(id: number): string {
    if (id === END) return '<end>';
    const bytes = this.bytesOf(id);
    const text = fromBytes(bytes);
    if (!text.includes('\ufffd')) return JSON.stringify(text);
    return `<0x${Array.from(bytes, (byte) => byte.toString(16).toUpperCase().padStart(2, '0')).join('')}>`;
  }
}

function trieOf(tokens: readonly Uint8Array[]): TrieNode {
  let count = 0;
  const make = (): TrieNode => ({ index: count++, token: -1, children: new Map() });
  const root = make();
  for (const [id, bytes] of tokens.entries()) {
    if (id === END) continue;
    let node = root;
    for (const byte of bytes) {
      let child = node.children.get(byte);
      if (child === undefined) {
        child = make();
        node.children.set(byte, child);
      }
      node = child;
    }
    node.token = id;
  }
  return root;
}

/** WTF-8 (https://wtf-8.codeberg.page): for well-formed strings it is UTF-8. */
export function toBytes(text: string): Uint8Array {
  if (text.isWellFormed()) return utf8.encode(text);
  const out: number[] = [];
  for (const character of text) {
    const code = character.codePointAt(0) as number;
    if (isSurrogate(code)) out.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f));
    else out.push(...utf8.encode(character));
  }
  return Uint8Array.from(out);
}

/** TextDecoder knows everything but lone surrogates, so the text is cut at those. */
function fromBytes(bytes: Uint8Array): string {
  let text = '';
  let from = 0;
  for (let i = bytes.indexOf(0xed); i >= 0; i = bytes.indexOf(0xed, i + 1)) {
    const second = bytes[i + 1] ?? 0;
    const third = bytes[i + 2] ?? 0;
    if (second < 0xa0 || second > 0xbf || third < 0x80 || third > 0xbf) continue;
    text +=
      fromUtf8.decode(bytes.subarray(from, i)) + String.fromCharCode(0xd000 | ((second & 0x3f) << 6) | (third & 0x3f));
    from = i + 3;
  }
  return text + fromUtf8.decode(bytes.subarray(from));
}

function isSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdfff;
}

function invalidWords(found: string, hint: string): IsogymError {
  return inputError('INVALID_WORDS', `expected words that are not empty and all different, found: ${found}`, hint);
}
