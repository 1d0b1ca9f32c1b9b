/**
 * @module The bytes that a link of a hash chain is the SHA-256 of: values one after another, each of which says where it ends,
 * so that no two rows of values have the same bytes. How a value is written stands with its method.
 */
import { hash } from 'node:crypto';
import type { Json } from './json.ts';

/** In front of what is not of the kind that stands in its place, as in a record that was damaged: a zero, written as no zero is. */
const ODD = [0x80, 0x00] as const;
/** Longer texts are written by the engine, shorter ones in a loop: what costs less. */
const SHORT = 16;
const ABSENT = 0;
const SAME = 1;

export class LinkBytes {
  #bytes: Buffer = Buffer.alloc(4096);
  #at = 0;
  /** By their length: making one costs a tenth of hashing it. */
  readonly #views: Uint8Array[] = [];

  /** Begins anew. @param before a link, whose digits come first; or empty */
  start(before: string): void {
    this.#at = this.#bytes.write(before, 0, 'latin1');
  }

  /** SHA-256 [64 hexadecimal digits] of all that was written since the start. */
  digest(): string {
    const length = this.#at;
    if (length > 1024) return hash('sha256', this.#bytes.subarray(0, length));
    let view = this.#views[length];
    if (view === undefined) {
      view = this.#bytes.subarray(0, length);
      this.#views[length] = view;
    }
    return hash('sha256', view);
  }

  /** A whole number ≥ 0: seven bits a byte, the lowest first, 128 added in all but the last. */
  integer(value: unknown): void {
    if (typeof value === 'number' && value >= 0 && value < 128 && (value | 0) === value) {
      if (this.#at === this.#bytes.length) this.#grow(1);
      this.#bytes[this.#at++] = value;
    } else if (typeof value === 'number' && value >= 128 && value < 16384 && (value | 0) === value) {
      if (this.#at + 2 > this.#bytes.length) this.#grow(2);
      this.#bytes[this.#at++] = 0x80 | (value & 0x7f);
      this.#bytes[this.#at++] = value >> 7;
    } else this.#large(value);
  }

  /** A number or null: 0; 1 and a whole number ≥ 0; or 2 and float64, the lowest byte first. */
  number(value: unknown): void {
    if (value === null) this.integer(ABSENT);
    else if (typeof value !== 'number') this.odd(value);
    else if (value >= 0 && Number.isSafeInteger(value)) {
      this.integer(1);
      this.integer(value);
    } else {
      this.integer(2);
      if (this.#at + 8 > this.#bytes.length) this.#grow(8);
      this.#at = this.#bytes.writeDoubleLE(value, this.#at);
    }
  }

  /**
   * A text: 2 + 2 · its length [UTF-16 code units] and a byte for each unit; or 1 more, and two bytes each, the lower first, where
   * a unit is above 255. What is absent or null: 0.
   */
  text(value: unknown): void {
    if (typeof value === 'string') {
      if (value.length > SHORT) this.#long(value);
      else this.#short(value);
    } else if (value === null || value === undefined) this.integer(ABSENT);
    else this.odd(value);
  }

  /** The same where it most often is `as`: then 1 alone. */
  same(value: string, as: string): void {
    if (value === as) this.integer(SAME);
    else this.text(value);
  }

  /**
   * A JSON value: null and numbers as above; 3 and a text; 4 for true, 5 for false; 6, how many and each element; 7, how many and
   * each member, its key and its value, in the order of the keys' UTF-16 code units.
   * @param as what a text in it most often is
   */
  json(value: Json, as: string): void {
    if (typeof value === 'string') {
      this.integer(3);
      this.same(value, as);
    } else if (typeof value === 'number') {
      this.number(value);
    } else if (typeof value !== 'object' || value === null) {
      this.integer(typeof value === 'boolean' ? (value ? 4 : 5) : ABSENT);
    } else if (Array.isArray(value)) {
      this.integer(6);
      this.integer(value.length);
      for (const one of value) this.json(one as Json, as);
    } else {
      const object = value as { readonly [key: string]: Json };
      const keys = Object.keys(object);
      if (keys.length > 1) keys.sort();
      this.integer(7);
      this.integer(keys.length);
      for (const key of keys) {
        this.text(key);
        this.json(object[key] as Json, as);
      }
    }
  }

  /** What is not of the kind that stands in its place: a zero as no zero is written, and its JSON as a text. */
  odd(value: unknown): void {
    this.#mark();
    this.text(JSON.stringify(value));
  }

  /** The same in place of several values: such a zero more, since the first of them may itself be odd. */
  oddWhole(value: unknown): void {
    this.#mark();
    this.odd(value);
  }

  #short(value: string): void {
    const { length } = value;
    this.integer(2 + 2 * length);
    if (this.#at + length > this.#bytes.length) this.#grow(length);
    const bytes = this.#bytes;
    const from = this.#at;
    for (let i = 0; i < length; i++) {
      const unit = value.charCodeAt(i);
      if (unit > 0xff) {
        // The head of a short text is one byte.
        this.#at--;
        this.#wide(value);
        return;
      }
      bytes[from + i] = unit;
    }
    this.#at = from + length;
  }

  #long(value: string): void {
    if (/[^\0-\xff]/.test(value)) {
      this.#wide(value);
      return;
    }
    this.integer(2 + 2 * value.length);
    if (this.#at + value.length > this.#bytes.length) this.#grow(value.length);
    this.#at += this.#bytes.write(value, this.#at, 'latin1');
  }

  #wide(value: string): void {
    this.integer(3 + 2 * value.length);
    if (this.#at + 2 * value.length > this.#bytes.length) this.#grow(2 * value.length);
    this.#at += this.#bytes.write(value, this.#at, 'utf16le');
  }

  #large(value: unknown): void {
    if (!(typeof value === 'number' && value >= 0 && Number.isSafeInteger(value))) {
      this.odd(value);
      return;
    }
    // A bitwise operation would cut it to 32 bits.
    for (let rest = value; ; rest = Math.floor(rest / 128)) {
      if (rest < 128) {
        this.integer(rest);
        return;
      }
      if (this.#at === this.#bytes.length) this.#grow(1);
      this.#bytes[this.#at++] = 0x80 | (rest % 128);
    }
  }

  #mark(): void {
    if (this.#at + ODD.length > this.#bytes.length) this.#grow(ODD.length);
    for (const byte of ODD) this.#bytes[this.#at++] = byte;
  }

  /** Makes room for so many bytes more. */
  #grow(more: number): void {
    const larger = Buffer.alloc(2 * (this.#at + more));
    larger.set(this.#bytes);
    this.#bytes = larger;
    this.#views.length = 0;
  }
}
