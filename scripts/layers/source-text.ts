/** @module TypeScript source with its comments and literals blanked, every character where it was: enough to find imports and calls by pattern. Not a parser. */

export interface SourceText {
  /** Comments are spaces. */
  readonly uncommented: string;
  /** Comments and what stands in strings, templates and regular expressions are spaces; the code inside `${}` is kept. */
  readonly bare: string;
}

/** After these a slash begins a regular expression and not a division. */
const BEFORE_REGEX =
  /(^|[([{,;=:!&|?+\-*%<>~^]|\b(return|typeof|case|in|of|do|else|void|delete|throw|new|await|yield))\s*$/;

export function readSource(source: string): SourceText {
  const uncommented = source.split('');
  const bare = source.split('');
  const blank = (from: number, to: number, ...texts: string[][]) => {
    for (const text of texts) for (let i = from; i < to; i++) if (text[i] !== '\n') text[i] = ' ';
  };
  /** Depth of braces at which each open template goes on. */
  const templates: number[] = [];
  let depth = 0;
  let at = 0;
  const end = (pattern: RegExp): number => {
    pattern.lastIndex = at;
    return pattern.exec(source) === null ? source.length : pattern.lastIndex;
  };
  const literal = (to: number) => {
    blank(at + 1, to - 1, bare);
    at = to;
  };
  const template = () => {
    const to = end(/(?:[^`\\$]|\\[\s\S]|\$(?!\{))*(?:`|\$\{)/y);
    const hole = source[to - 1] === '{';
    blank(at, to - 1, bare);
    at = to;
    if (hole) templates.push(depth++);
  };
  while (at < source.length) {
    const two = source.slice(at, at + 2);
    const char = source[at] ?? '';
    if (two === '//' || two === '/*') {
      const to = end(two === '//' ? /[^\n]*/y : /\/\*[\s\S]*?\*\//y);
      blank(at, to, uncommented, bare);
      at = to;
    } else if (char === "'" || char === '"') {
      literal(end(char === "'" ? /'(?:[^'\\\n]|\\[\s\S])*'/y : /"(?:[^"\\\n]|\\[\s\S])*"/y));
    } else if (char === '/' && BEFORE_REGEX.test(bare.slice(Math.max(0, at - 40), at).join(''))) {
      literal(end(/\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\//y));
    } else if (char === '`') {
      at += 1;
      template();
    } else {
      at += 1;
      if (char === '{') depth += 1;
      if (char === '}') {
        depth -= 1;
        if (templates.at(-1) === depth) {
          templates.pop();
          template();
        }
      }
    }
  }
  return { uncommented: uncommented.join(''), bare: bare.join('') };
}

export interface Import {
  readonly specifier: string;
  readonly typeOnly: boolean;
  /** From 1. */
  readonly line: number;
}

const FORMS = [
  /\b(?:import|export)\b(?<type>\s+type\b)?[\w$\s{},*]*?\bfrom\s*(['"])(?<specifier>[^'"]+)\2/g,
  /\bimport\s*(['"])(?<specifier>[^'"]+)\1/g,
  /(?<type>\btypeof\s+)?\bimport\s*\(\s*(['"])(?<specifier>[^'"]+)\2/g,
];

export function importsOf({ uncommented, bare }: SourceText): readonly Import[] {
  return FORMS.flatMap((form) =>
    [...uncommented.matchAll(form)]
      // A match whose first letters are blanked stands inside a literal.
      .filter(({ index }) => bare.slice(index, index + 6) === uncommented.slice(index, index + 6))
      .map(({ index, groups }) => ({
        specifier: groups?.specifier ?? '',
        typeOnly: groups?.type !== undefined,
        line: lineAt(uncommented, index),
      })),
  );
}

export function lineAt(text: string, index: number): number {
  return text.slice(0, index).split('\n').length;
}
