/** @module YAML 1.2 text as plain data, with the place of every key and value; what is not plain data is a problem at its place. */
import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseAllDocuments } from 'yaml';

export type Path = readonly (string | number)[];

export interface Place {
  readonly line: number;
  readonly column: number;
}

/** Where a key stands and where its value does; equal for the items of a list and for the root. */
export interface Span {
  readonly key: Place;
  readonly value: Place;
}

export interface SourceProblem {
  readonly place: Place;
  readonly path: Path;
  readonly text: string;
}

export interface YamlSource {
  readonly data: unknown;
  readonly spans: ReadonlyMap<string, Span>;
  readonly problems: readonly SourceProblem[];
  /** True where the text is not YAML: what follows the first problem cannot be relied on. */
  readonly broken: boolean;
}

/** Beyond these, later syntax errors only echo earlier ones. */
const MAX_SYNTAX_ERRORS = 10;

/** What most often lies behind a message that does not say it. */
const SYNTAX_HINTS: Readonly<Record<string, string>> = {
  MULTILINE_IMPLICIT_KEY: ' (is there a space after the colon?)',
};

export function pathKey(path: Path): string {
  return JSON.stringify(path);
}

/** Reads one document of plain data: no aliases, no tags, no duplicate keys, keys that are text. Never throws for what the text holds. */
export function readYaml(text: string): YamlSource {
  const lines = new LineCounter();
  const place = (offset: number): Place => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  const [document, second] = parseAllDocuments(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: false });
  const spans = new Map<string, Span>();
  const problems: SourceProblem[] = [];
  if (document === undefined) {
    problems.push({ place: { line: 1, column: 1 }, path: [], text: 'expected keys and values, found an empty text' });
    return { data: undefined, spans, problems, broken: true };
  }
  for (const error of syntaxErrors([...document.errors, ...document.warnings])) {
    problems.push({
      place: place(error.pos[0]),
      path: [],
      text: `expected YAML, found a mistake: ${lowerFirst(error.message)}${SYNTAX_HINTS[error.code] ?? ''}`,
    });
  }
  const broken = problems.length > 0;
  const { version } = document.directives?.yaml ?? {};
  if (version !== undefined && version !== '1.2') {
    problems.push({ place: { line: 1, column: 1 }, path: [], text: `expected YAML 1.2, found %YAML ${version}` });
  }
  if (second !== undefined) {
    problems.push({ place: place(second.range[0]), path: [], text: 'expected one document, found a second one' });
  }

  const plain = (node: Node | null, path: Path, keyAt: Place | undefined): unknown => {
    const valueAt = place(node?.range?.[0] ?? 0);
    spans.set(pathKey(path), { key: keyAt ?? valueAt, value: valueAt });
    if (node === null) return null;
    const refuse = (text: string) => problems.push({ place: valueAt, path, text });
    if (isAlias(node)) {
      refuse(`expected the value written out, found the alias *${node.source}`);
      return undefined;
    }
    if (node.tag !== undefined) refuse(`expected a plain value, found the tag ${node.tag}`);
    if (isScalar(node)) return node.value;
    if (isSeq<Node>(node)) return node.items.map((item, i) => plain(item, [...path, i], undefined));
    if (!isMap<Node, Node | null>(node)) return undefined;
    const data: Record<string, unknown> = {};
    for (const pair of node.items) {
      const at = place(pair.key.range?.[0] ?? 0);
      const key = isScalar(pair.key) ? pair.key.value : undefined;
      const name = typeof key === 'string' || typeof key === 'number' ? String(key) : undefined;
      if (name === undefined || name === '__proto__') {
        problems.push({
          place: at,
          path,
          text: `expected a key that is plain text, found ${name ?? 'something else'}`,
        });
      } else if (Object.hasOwn(data, name)) {
        problems.push({ place: at, path: [...path, name], text: 'expected each key once, found it again' });
      } else {
        data[name] = plain(pair.value, [...path, name], at);
      }
    }
    return data;
  };
  return { data: plain(document.contents as Node | null, [], undefined), spans, problems, broken };
}

type SyntaxError = { readonly code: string; readonly message: string; readonly pos: [number, number] };

function syntaxErrors(errors: readonly SyntaxError[]): readonly SyntaxError[] {
  const exhausted = errors.filter((e) => e.code === 'RESOURCE_EXHAUSTION').sort((a, b) => a.pos[0] - b.pos[0])[0];
  if (exhausted !== undefined) return [{ ...exhausted, message: 'Nested too deeply' }];
  // A tag is told with its path, as a value.
  return errors.filter((e) => e.code !== 'TAG_RESOLVE_FAILED').slice(0, MAX_SYNTAX_ERRORS);
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
