/**
 * @module A calculator: numbers, + - * /, unary minus and parentheses, by recursive descent. It evaluates nothing but these:
 * a policy under optimisation attacks it. Errors are plain `Error`s, since it runs inside an isolate, where only the message
 * crosses the line.
 *
 * sum = product (('+' | '-') product)*;  product = factor (('*' | '/') factor)*;  factor = '-'* (number | '(' sum ')')
 */

/** Longest expression, in UTF-16 code units. */
export const MAX_LENGTH = 200;
/** Deepest nesting of parentheses. */
export const MAX_DEPTH = 20;

/**
 * The value in double precision, as the shortest decimal text that reads back as the same number: integers without a point,
 * never an exponent, zero without a sign.
 * @throws Error with position (from 1), what was expected and what was found; on a division by zero; on a value too large
 */
export function calculate(expression: string): string {
  if (expression.length > MAX_LENGTH) {
    throw new Error(`expected at most ${MAX_LENGTH} characters, found ${expression.length}`);
  }
  const reader = new Reader(expression);
  const value = sum(reader, 0);
  if (!reader.atEnd) throw reader.expected("an operator ('+', '-', '*', '/') or the end");
  // Out of reach within MAX_LENGTH, where every value is below 1e200; it guards the text below should that cap rise.
  if (!Number.isFinite(value)) throw new Error('the result is too large');
  return decimalText(value);
}

/** Characters one after the other, with white space skipped. */
class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
    this.#skipSpace();
  }

  get atEnd(): boolean {
    return this.#at === this.#text.length;
  }

  /** Position of the next character, from 1. */
  get position(): number {
    return this.#at + 1;
  }

  /** Takes the next character if it is `character`. */
  take(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    this.#skipSpace();
    return true;
  }

  /** Takes digits, with a point and more digits if there is one; undefined where there is no digit. */
  number(): number | undefined {
    const start = this.#at;
    if (!this.#digits()) return undefined;
    if (this.#text[this.#at] === '.') {
      this.#at++;
      if (!this.#digits()) throw this.expected('a digit after the point');
    }
    const value = Number(this.#text.slice(start, this.#at));
    this.#skipSpace();
    return value;
  }

  expected(what: string): Error {
    const code = this.#text.codePointAt(this.#at);
    const found = code === undefined ? 'the end' : JSON.stringify(String.fromCodePoint(code));
    return new Error(`position ${this.position}: expected ${what}, found ${found}`);
  }

  #digits(): boolean {
    const start = this.#at;
    for (let c = this.#text[this.#at]; c !== undefined && c >= '0' && c <= '9'; c = this.#text[this.#at]) this.#at++;
    return this.#at > start;
  }

  #skipSpace(): void {
    for (let c = this.#text[this.#at]; c === ' ' || c === '\t' || c === '\n' || c === '\r'; c = this.#text[this.#at]) {
      this.#at++;
    }
  }
}

function sum(reader: Reader, depth: number): number {
  let value = product(reader, depth);
  for (;;) {
    if (reader.take('+')) value += product(reader, depth);
    else if (reader.take('-')) value -= product(reader, depth);
    else return value;
  }
}

function product(reader: Reader, depth: number): number {
  let value = factor(reader, depth);
  for (;;) {
    const position = reader.position;
    if (reader.take('*')) value *= factor(reader, depth);
    else if (reader.take('/')) {
      const divisor = factor(reader, depth);
      if (divisor === 0) throw new Error(`position ${position}: division by zero`);
      value /= divisor;
    } else return value;
  }
}

function factor(reader: Reader, depth: number): number {
  let sign = 1;
  while (reader.take('-')) sign = -sign;
  const number = reader.number();
  if (number !== undefined) return sign * number;
  const position = reader.position;
  if (!reader.take('(')) throw reader.expected("a number, '-' or '('");
  if (depth === MAX_DEPTH) throw new Error(`position ${position}: parentheses nest deeper than ${MAX_DEPTH}`);
  const value = sum(reader, depth + 1);
  if (!reader.take(')')) throw reader.expected("an operator ('+', '-', '*', '/') or ')'");
  return sign * value;
}

/** JavaScript's shortest round-trip digits, with the exponent that it writes from 1e21 and below 1e-6 spelled out in zeros. */
function decimalText(value: number): string {
  if (value < 0) return `-${decimalText(-value)}`;
  const [mantissa = '', exponentText] = String(value).split('e');
  if (exponentText === undefined) return mantissa;
  const [whole = '', fraction = ''] = mantissa.split('.');
  const exponent = Number(exponentText);
  return exponent < 0
    ? `0.${'0'.repeat(-exponent - 1)}${whole}${fraction}`
    : `${whole}${fraction}${'0'.repeat(exponent - fraction.length)}`;
}
