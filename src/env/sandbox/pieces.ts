/** @module Texts on their way into an isolate, in pieces. */

/** UTF-16 code units, of one or two bytes each. */
const LENGTH = 511;

/** What is longer goes in one piece: each of them takes a place on the stack. */
const LONGEST = 1_048_576;

/**
 * isolated-vm makes of a text from 1024 bytes on one whose bytes lie outside the heap and which is old from its birth: it stays until
 * the whole heap is gone through, which is after tens of MiB of such texts. A shorter one goes like any other value.
 * @returns at least one piece; together they are the text
 */
export function pieces(text: string): [string, ...string[]] {
  if (text.length > LONGEST) return [text];
  const all: [string, ...string[]] = [text.slice(0, LENGTH)];
  for (let start = LENGTH; start < text.length; start += LENGTH) all.push(text.slice(start, start + LENGTH));
  return all;
}
