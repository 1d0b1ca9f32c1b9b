/**
 * @module The strings that a string schema admits, as bytes: bare UTF-8, or inside a JSON string as JSON.stringify writes it.
 * Only well-formed strings: a policy never writes a lone surrogate by itself (a literal in an enum may contain one).
 */
import { inputError } from '../../records/errors.ts';
import type { Language, Languages, Range } from './language.ts';

/** What a string has to satisfy, all of it. */
export interface TextRules {
  /** Its length in code points, as zod counts since 4.6; `max` may be Infinity. */
  readonly min: number;
  readonly max: number;
  readonly patterns: readonly TextPattern[];
}
export interface TextPattern {
  /** Over code points where `unicode`, else over UTF-16 code units: as a RegExp with or without its u flag reads. */
  readonly language: Language;
  readonly unicode: boolean;
}

/** What may still follow: a state of the product of the patterns and the length counter. */
interface Text extends TextRules {
  readonly key: string;
  readonly accepting: boolean;
  /** Undefined until it is known whether any string gets from here to an accepting state. */
  alive: boolean | undefined;
  edges: readonly Edge[] | undefined;
}
/** Every code point from `low` to `high` leads to `target`. */
interface Edge {
  readonly low: number;
  readonly high: number;
  readonly target: Text;
}

/** The code points that JSON.stringify escapes in a well-formed string, by what it writes for them. */
const ESCAPES: ReadonlyMap<string, number> = new Map(
  [...Array(0x20).keys(), 0x22, 0x5c].map((code) => [JSON.stringify(String.fromCharCode(code)).slice(1, -1), code]),
);

/** States looked at for one that accepts: more than any sensible schema needs, few enough to be over in seconds. */
const MAX_SEARCH = 50_000;

export class Texts {
  readonly #languages: Languages;
  readonly #made = new Map<string, Text>();

  constructor(languages: Languages) {
    this.#languages = languages;
  }

  /** The strings as they are, in UTF-8. */
  bare(rules: TextRules): Language {
    const text = this.#text(rules);
    return this.#alive(text) ? this.#bare(text, '') : this.#languages.empty;
  }

  /** The strings as JSON, quotes included. */
  quoted(rules: TextRules): Language {
    const text = this.#text(rules);
    const opening = this.#languages.word([0x22]);
    return this.#languages.sequence(opening, this.#alive(text) ? this.#quoted(text, '') : this.#languages.empty);
  }

  /** `pending`: the bytes of a character that is not complete, as Latin-1. */
  #bare(text: Text, pending: string): Language {
    const nullable = pending === '' && text.accepting;
    return this.#languages.behaviour(`bare ${text.key} ${pending}`, nullable, (byte) => {
      const bytes = pending + String.fromCharCode(byte);
      return this.#character(text, bytes, 0, (target) => this.#bare(target ?? text, target === undefined ? bytes : ''));
    });
  }

  #quoted(text: Text, pending: string): Language {
    const { empty, epsilon } = this.#languages;
    return this.#languages.behaviour(`quoted ${text.key} ${pending}`, false, (byte) => {
      const bytes = pending + String.fromCharCode(byte);
      const then = (target: Text | undefined) => this.#quoted(target ?? text, target === undefined ? bytes : '');
      if (bytes === '"') return text.accepting ? epsilon : empty;
      if (!bytes.startsWith('\\')) return this.#character(text, bytes, 0x20, then);
      const escaped = ESCAPES.get(bytes);
      if (escaped !== undefined) {
        const target = this.#target(text, escaped);
        return target === undefined ? empty : then(target);
      }
      for (const [written, code] of ESCAPES) {
        if (written.startsWith(bytes) && this.#target(text, code) !== undefined) return then(undefined);
      }
      return empty;
    });
  }

  /** Goes on to the target where `bytes` are a whole character, to undefined where they are a beginning of one that may follow. */
  #character(text: Text, bytes: string, least: number, then: (target: Text | undefined) => Language): Language {
    const range = codePoints(bytes);
    if (range === undefined || range.high < least) return this.#languages.empty;
    if (range.complete) {
      const target = this.#target(text, range.low);
      return target === undefined ? this.#languages.empty : then(target);
    }
    const possible = this.#edges(text).some(({ low, high }) => low <= range.high && range.low <= high);
    return possible ? then(undefined) : this.#languages.empty;
  }

  #target(text: Text, code: number): Text | undefined {
    return this.#edges(text).find(({ low, high }) => low <= code && code <= high)?.target;
  }

  /** What leads on towards an accepting state, in ascending order. */
  #edges(text: Text): readonly Edge[] {
    text.edges ??= this.#successors(text).filter(({ target }) => this.#alive(target));
    return text.edges;
  }

  /** Breadth first, until an accepting state or one known to be alive is found, or there is nothing left. @throws GRAMMAR_TOO_LARGE */
  #alive(start: Text): boolean {
    if (start.alive !== undefined) return start.alive;
    const cameFrom = new Map<Text, Text | undefined>([[start, undefined]]);
    for (const text of cameFrom.keys()) {
      if (text.accepting || text.alive) {
        for (let on: Text | undefined = text; on !== undefined; on = cameFrom.get(on)) on.alive = true;
        return true;
      }
      for (const { target } of this.#successors(text)) {
        if (target.alive !== false && !cameFrom.has(target)) cameFrom.set(target, text);
      }
      if (cameFrom.size > MAX_SEARCH) {
        throw inputError(
          'GRAMMAR_TOO_LARGE',
          `expected a string that satisfies all patterns and length bounds of one schema within ${MAX_SEARCH} states of their automata, found none`,
          'Write the patterns as one, or narrow the bounds.',
        );
      }
    }
    for (const text of cameFrom.keys()) text.alive = false;
    return false;
  }

  /**
   * One step for each class of characters that no pattern tells apart. Above U+FFFF a pattern without the u flag sees two code
   * units, so a class there is a range of first ones times a range of second ones.
   */
  #successors(text: Text): Edge[] {
    const edges: Edge[] = [];
    const add = (low: number, high: number, target: Text | undefined) => target && edges.push({ low, high, target });
    const cuts = text.patterns.map(({ language }) => this.#languages.cuts(language));
    for (const [low, high] of [...split(0, 0xd7ff, cuts.flat()), ...split(0xe000, 0xffff, cuts.flat())]) {
      add(low, high, this.#after(text, [low]));
    }
    const firsts = text.patterns.flatMap(({ unicode }, i) =>
      unicode ? (cuts[i] ?? []).flatMap((cut) => [firstUnit(cut), firstUnit(cut) + 1]) : (cuts[i] ?? []),
    );
    for (const [first, lastFirst] of split(0xd800, 0xdbff, firsts)) {
      const seconds = text.patterns.flatMap(({ language, unicode }, i) =>
        unicode
          ? (cuts[i] ?? []).filter((cut) => firstUnit(cut) === first).map(secondUnit)
          : this.#languages.cuts(this.#languages.step(language, first)),
      );
      for (const [second, lastSecond] of split(0xdc00, 0xdfff, seconds)) {
        const target = this.#after(text, [first, second]);
        if (second === 0xdc00 && lastSecond === 0xdfff) add(pair(first, second), pair(lastFirst, lastSecond), target);
        else for (let unit = first; unit <= lastFirst; unit++) add(pair(unit, second), pair(unit, lastSecond), target);
      }
    }
    return merged(edges);
  }

  #after(text: Text, units: readonly number[]): Text | undefined {
    if (text.max === 0) return undefined;
    const [first = 0, second] = units;
    const points = second === undefined ? units : [pair(first, second)];
    const patterns: TextPattern[] = [];
    for (const { language, unicode } of text.patterns) {
      const next = (unicode ? points : units).reduce((term, symbol) => this.#languages.step(term, symbol), language);
      if (next === this.#languages.empty) return undefined;
      patterns.push({ language: next, unicode });
    }
    return this.#text({ min: Math.max(text.min - 1, 0), max: text.max - 1, patterns });
  }

  #text({ min, max, patterns }: TextRules): Text {
    const key = [min, max, ...patterns.map(({ language, unicode }) => `${language.id}${unicode ? 'u' : ''}`)].join(',');
    let text = this.#made.get(key);
    if (text === undefined) {
      const accepting = min === 0 && max >= 0 && patterns.every(({ language }) => language.nullable);
      text = { key, min, max, patterns, accepting, alive: undefined, edges: undefined };
      this.#made.set(key, text);
    }
    return text;
  }
}

/** The inclusive ranges that begin at `from` and at each cut up to `to`. */
function split(from: number, to: number, cuts: readonly number[]): Range[] {
  const starts = [...new Set([from, ...cuts.filter((cut) => cut > from && cut <= to)])].sort((a, b) => a - b);
  return starts.map((start, i) => [start, (starts[i + 1] ?? to + 1) - 1]);
}

/** In ascending order, neighbours that lead to the same target as one. */
function merged(edges: Edge[]): Edge[] {
  const out: { low: number; high: number; readonly target: Text }[] = [];
  for (const edge of edges.sort((a, b) => a.low - b.low)) {
    const last = out.at(-1);
    if (last?.target === edge.target && last.high === edge.low - 1) last.high = edge.high;
    else out.push({ ...edge });
  }
  return out;
}

function pair(first: number, second: number): number {
  return 0x10000 + (first - 0xd800) * 0x400 + second - 0xdc00;
}
/** Of a code point above U+FFFF; below that, less than any first unit. */
function firstUnit(code: number): number {
  return code < 0x10000 ? 0 : 0xd800 + ((code - 0x10000) >> 10);
}
function secondUnit(code: number): number {
  return 0xdc00 + ((code - 0x10000) & 0x3ff);
}

const LEAST = [0, 0x80, 0x800, 0x10000];

/** The code points whose UTF-8 begins with `bytes` (as Latin-1), or undefined where there are none; surrogates are not left out. */
function codePoints(bytes: string): { low: number; high: number; complete: boolean } | undefined {
  const first = bytes.charCodeAt(0);
  const length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (length === 0 || bytes.length > length) return undefined;
  let code = length === 1 ? first : first & (0x7f >> length);
  for (let i = 1; i < bytes.length; i++) {
    const byte = bytes.charCodeAt(i);
    if (byte < 0x80 || byte > 0xbf) return undefined;
    code = (code << 6) | (byte & 0x3f);
  }
  const missing = 6 * (length - bytes.length);
  const low = Math.max(code << missing, LEAST[length - 1] ?? 0);
  const high = Math.min((code << missing) | ((1 << missing) - 1), 0x10ffff);
  return low > high ? undefined : { low, high, complete: missing === 0 };
}
