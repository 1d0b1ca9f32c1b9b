/** @module Where the parts of a JSON text stand in it, so that what a policy wrote can be kept to the letter. Not a parser: it reads only what JSON.parse has accepted. */

/** The members of the object, or the elements of the array, that `text` is: their keys (null in an array) and their source. Iterative: no nesting is too deep. */
export function partsOf(text: string): readonly { readonly key: string | null; readonly source: string }[] {
  const parts: { key: string | null; source: string }[] = [];
  let at = skipSpace(text, 0);
  const isObject = text[at] === '{';
  at = skipSpace(text, at + 1);
  while (text[at] !== '}' && text[at] !== ']') {
    let key: string | null = null;
    if (isObject) {
      const end = stringEnd(text, at);
      key = JSON.parse(text.slice(at, end)) as string;
      at = skipSpace(text, skipSpace(text, end) + 1);
    }
    const end = valueEnd(text, at);
    parts.push({ key, source: text.slice(at, end) });
    at = skipSpace(text, end);
    if (text[at] === ',') at = skipSpace(text, at + 1);
  }
  return parts;
}

/** Whether objects and arrays nest in it more than `levels` deep; 1 is `[]`. Short texts cannot, and are not looked at. */
export function nestsDeeper(text: string, levels: number): boolean {
  if (text.length < 2 * (levels + 1)) return false;
  let depth = 0;
  for (let at = 0; at < text.length; ) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) {
      at = stringEnd(text, at);
      continue;
    }
    if (unit === 0x7b || unit === 0x5b) depth++;
    else if (unit === 0x7d || unit === 0x5d) depth--;
    if (depth > levels) return true;
    at++;
  }
  return false;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Space, line feed, carriage return and tab are all of JSON's that is no more than a space. */
function skipSpace(text: string, from: number): number {
  let at = from;
  while (text.charCodeAt(at) <= 0x20) at++;
  return at;
}

/** One past the closing quote of the string that opens at `from`. */
function stringEnd(text: string, from: number): number {
  let at = from + 1;
  for (let unit = text.charCodeAt(at); unit !== QUOTE; unit = text.charCodeAt(at)) at += unit === BACKSLASH ? 2 : 1;
  return at + 1;
}

function valueEnd(text: string, from: number): number {
  let at = from;
  let depth = 0;
  do {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) {
      at = stringEnd(text, at);
    } else if (unit === 0x7b || unit === 0x5b) {
      // { or [
      depth++;
      at++;
    } else if (unit === 0x7d || unit === 0x5d) {
      // } or ]
      depth--;
      at++;
    } else if (depth > 0) {
      at++;
    } else {
      at = bareEnd(text, at);
    }
  } while (depth > 0);
  return at;
}

/** One past a number, true, false or null, which ends with the text, or at a comma, a bracket or a space. */
function bareEnd(text: string, from: number): number {
  let at = from;
  while (at < text.length && !',]} \t\n\r'.includes(text[at] as string)) at++;
  return at;
}
