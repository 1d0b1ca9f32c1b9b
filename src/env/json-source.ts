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

function skipSpace(text: string, from: number): number {
  let at = from;
  while (' \t\n\r'.includes(text[at] ?? 'end')) at++;
  return at;
}

/** One past the closing quote of the string that opens at `from`. */
function stringEnd(text: string, from: number): number {
  let at = from + 1;
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}

function valueEnd(text: string, from: number): number {
  let at = from;
  let depth = 0;
  do {
    const char = text[at];
    if (char === '"') {
      at = stringEnd(text, at);
    } else if (char === '{' || char === '[') {
      depth++;
      at++;
    } else if (char === '}' || char === ']') {
      depth--;
      at++;
    } else if (depth > 0) {
      at++;
    } else {
      // A bare number, true, false or null.
      while (at < text.length && !',]} \t\n\r'.includes(text[at] as string)) at++;
    }
  } while (depth > 0);
  return at;
}
