/**
 * @module A regular expression, as `RegExp.prototype.test` reads it, to the language of the strings that it matches.
 *
 * Supported: literals, `.`, classes, \d \w \s and their complements, character escapes, groups of every kind that only
 * groups, `|`, ? * + {m} {m,} {m,n} (a lazy one matches the same strings), ^ and $ at the ends of a top-level alternative; flags none or u.
 * A parser of our own, because the source is known to be valid (it comes from a RegExp) and a subset that refuses the rest is as
 * short as the visitor that a parser from npm would need; refa, which goes on to automata, builds them whole and over characters,
 * while this one is walked lazily over bytes.
 */
import { complement, type Language, type Languages, type Range } from './language.ts';
import type { TextPattern } from './text.ts';

/** Largest count in a quantifier. */
export const MAX_COUNT = 4096;
export const PATTERN_SUPPORT = `literals, ".", classes, \\d \\w \\s \\D \\W \\S, groups, "|", ? * + {m,n} up to ${MAX_COUNT}, ^ and $ at the ends, flags none or u`;

const DIGITS: readonly Range[] = [[0x30, 0x39]];
const WORD: readonly Range[] = [...DIGITS, [0x41, 0x5a], [0x5f, 0x5f], [0x61, 0x7a]];
const LINE_ENDS: readonly Range[] = [
  [0x0a, 0x0a],
  [0x0d, 0x0d],
  [0x2028, 0x2029],
];
/** ECMA-262 WhiteSpace and LineTerminator. */
const SPACE: readonly Range[] = [
  ...[0x20, 0xa0, 0x1680, 0x202f, 0x205f, 0x3000, 0xfeff].map((code): Range => [code, code]),
  [0x09, 0x0d],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
];
const SETS: Readonly<Record<string, readonly Range[]>> = { d: DIGITS, w: WORD, s: SPACE };
const CONTROLS: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13 };

/** @param refuse called with what was found where it is not supported. */
export function parsePattern(languages: Languages, regexp: RegExp, refuse: (found: string) => never): TextPattern {
  const written = String(regexp);
  if (regexp.flags !== '' && regexp.flags !== 'u') refuse(`${written} with the flags "${regexp.flags}"`);
  const refuseIn = (found: string): never => refuse(`${found} in ${written}`);
  const unicode = regexp.unicode;
  return { language: new Parser(languages, regexp.source, unicode, refuseIn).whole(), unicode };
}

class Parser {
  readonly #languages: Languages;
  readonly #symbols: readonly number[];
  readonly #unicode: boolean;
  readonly #largest: number;
  readonly #refuse: (found: string) => never;
  #at = 0;

  constructor(languages: Languages, source: string, unicode: boolean, refuse: (found: string) => never) {
    this.#languages = languages;
    this.#symbols = unicode
      ? Array.from(source, (character) => character.codePointAt(0) as number)
      : Array.from({ length: source.length }, (_, i) => source.charCodeAt(i));
    this.#unicode = unicode;
    this.#largest = unicode ? 0x10ffff : 0xffff;
    this.#refuse = refuse;
  }

  /** Where a side is not anchored, anything may stand there. */
  whole(): Language {
    const anything = this.#languages.repeat(this.#languages.symbols([[0, this.#largest]]), 0, Number.POSITIVE_INFINITY);
    return this.#alternatives(() => {
      const before = this.#take('^') ? this.#languages.epsilon : anything;
      const inner = this.#sequence();
      const after = this.#take('$') ? this.#languages.epsilon : anything;
      if (this.#peek() !== undefined && this.#peek() !== '|') this.#refuse('$ before the end');
      return this.#languages.sequence(before, inner, after);
    });
  }

  #alternatives(one: () => Language): Language {
    const options = [one()];
    while (this.#take('|')) options.push(one());
    return this.#languages.choice(...options);
  }

  #sequence(): Language {
    const parts: Language[] = [];
    for (let next = this.#peek(); next !== undefined && !'|)$'.includes(next); next = this.#peek()) {
      parts.push(this.#quantified(this.#atom()));
    }
    return this.#languages.sequence(...parts);
  }

  #atom(): Language {
    if (this.#take('(')) return this.#group();
    if (this.#take('[')) return this.#class();
    if (this.#take('.')) return this.#languages.symbols(complement(LINE_ENDS, this.#largest));
    if (this.#take('^')) this.#refuse('^ after the beginning');
    if (this.#take('\\')) {
      if (this.#take('b') || this.#take('B')) this.#refuse('a word boundary');
      const escaped = this.#escape();
      return this.#languages.symbols(typeof escaped === 'number' ? [[escaped, escaped]] : escaped);
    }
    return this.#languages.word([this.#next()]);
  }

  #group(): Language {
    if (this.#take('?') && !this.#take(':')) {
      const named = this.#take('<');
      if (!named || this.#peek() === '=' || this.#peek() === '!') this.#refuse('a look-around or a modifier');
      while (!this.#take('>')) this.#at++;
    }
    const inner = this.#alternatives(() => this.#sequence());
    if (!this.#take(')')) this.#refuse('an anchor inside a group');
    return inner;
  }

  #quantified(body: Language): Language {
    const [min, max] = this.#count();
    if (min > MAX_COUNT || (max > MAX_COUNT && max !== Number.POSITIVE_INFINITY)) {
      this.#refuse(`a count above ${MAX_COUNT}`);
    }
    return this.#languages.repeat(body, min, max);
  }

  #count(): [min: number, max: number] {
    const count = this.#written();
    if (count === undefined) return [1, 1];
    this.#take('?');
    return count;
  }

  #written(): [min: number, max: number] | undefined {
    if (this.#take('?')) return [0, 1];
    if (this.#take('*')) return [0, Number.POSITIVE_INFINITY];
    if (this.#take('+')) return [1, Number.POSITIVE_INFINITY];
    if (this.#peek() !== '{') return undefined;
    const rest = this.#symbols
      .slice(this.#at)
      .map((symbol) => String.fromCodePoint(symbol))
      .join('');
    const braces = /^\{(\d+)(,?)(\d*)\}/.exec(rest);
    // Without the u flag a brace that counts nothing is a literal.
    if (braces === null) return undefined;
    this.#at += braces[0].length;
    const min = Number(braces[1]);
    return [min, braces[3] !== '' ? Number(braces[3]) : braces[2] === '' ? min : Number.POSITIVE_INFINITY];
  }

  #class(): Language {
    const negated = this.#take('^');
    const ranges: Range[] = [];
    while (!this.#take(']')) {
      const low = this.#member();
      const dash = this.#peek() === '-' && this.#peek(1) !== ']';
      if (typeof low !== 'number') ranges.push(...low);
      else if (!dash) ranges.push([low, low]);
      if (!dash) continue;
      this.#at++;
      const high = this.#member();
      if (typeof low === 'number' && typeof high === 'number') ranges.push([low, high]);
      else {
        // Without the u flag a dash beside a set such as \w is a literal.
        ranges.push([0x2d, 0x2d], ...(typeof high === 'number' ? [[high, high] as const] : high));
        if (typeof low === 'number') ranges.push([low, low]);
      }
    }
    return this.#languages.symbols(negated ? complement(ranges, this.#largest) : ranges);
  }

  #member(): number | readonly Range[] {
    if (!this.#take('\\')) return this.#next();
    return this.#take('b') ? 8 : this.#escape();
  }

  /** What stands after a backslash: a symbol, or a set of them. */
  #escape(): number | readonly Range[] {
    const symbol = this.#next();
    const letter = String.fromCodePoint(symbol);
    const set = SETS[letter.toLowerCase()];
    if (set !== undefined) return letter in SETS ? set : complement(set, this.#largest);
    const control = CONTROLS[letter];
    if (control !== undefined) return control;
    if (letter === 'x') return this.#hex(2) ?? this.#refuse('\\x without two hexadecimal digits');
    if (letter === 'u') return this.#unicodeEscape();
    if (letter === 'c' && /^[a-zA-Z]$/.test(this.#peek() ?? '')) return this.#next() % 32;
    if (letter === '0' && !/^\d$/.test(this.#peek() ?? '')) return 0;
    if (/^[a-zA-Z0-9]$/.test(letter)) this.#refuse(`\\${letter}`);
    return symbol;
  }

  #unicodeEscape(): number {
    if (this.#unicode && this.#take('{')) {
      let code = 0;
      while (!this.#take('}')) code = code * 16 + Number.parseInt(String.fromCodePoint(this.#next()), 16);
      return code;
    }
    const unit = this.#hex(4) ?? this.#refuse('\\u without four hexadecimal digits');
    if (!this.#unicode || unit < 0xd800 || unit > 0xdbff || this.#peek() !== '\\' || this.#peek(1) !== 'u') return unit;
    const back = this.#at;
    this.#at += 2;
    const low = this.#hex(4) ?? 0;
    if (low >= 0xdc00 && low <= 0xdfff) return 0x10000 + (unit - 0xd800) * 0x400 + low - 0xdc00;
    this.#at = back;
    return unit;
  }

  #hex(digits: number): number | undefined {
    const text = this.#symbols
      .slice(this.#at, this.#at + digits)
      .map((symbol) => String.fromCodePoint(symbol))
      .join('');
    if (text.length !== digits || !/^[0-9a-fA-F]+$/.test(text)) return undefined;
    this.#at += digits;
    return Number.parseInt(text, 16);
  }

  #peek(ahead = 0): string | undefined {
    const symbol = this.#symbols[this.#at + ahead];
    return symbol === undefined ? undefined : String.fromCodePoint(symbol);
  }

  #take(character: string): boolean {
    if (this.#peek() !== character) return false;
    this.#at++;
    return true;
  }

  #next(): number {
    const symbol = this.#symbols[this.#at++];
    return symbol ?? this.#refuse('an unexpected end');
  }
}
