/**
 * @module Regular languages as terms and their derivatives (Brzozowski 1964; Owens, Reppy and Turon 2009, "Regular-expression
 * derivatives re-examined"): the term is the state of a deterministic automaton that is built only as far as it is walked.
 * Symbols are non-negative integers; what they stand for (bytes, UTF-16 code units, code points) is the caller's.
 *
 * Every term other than `empty` has at least one word: the constructors see to it. So a step that does not lead to `empty`
 * never leads into a dead end.
 */

interface Common {
  /** Unique in its `Languages`; equal terms are one object. */
  readonly id: number;
  /** Whether the empty word belongs to it. */
  readonly nullable: boolean;
  readonly derivatives: Map<number, Language>;
}
/** An inclusive range of symbols. */
export type Range = readonly [number, number];
export type Language = Common &
  (
    | { readonly kind: 'empty' | 'epsilon' }
    | { readonly kind: 'symbols'; readonly ranges: readonly Range[] }
    | { readonly kind: 'sequence'; readonly first: Language; readonly rest: Language }
    | { readonly kind: 'choice'; readonly options: readonly Language[] }
    | { readonly kind: 'repeat'; readonly body: Language; readonly min: number; readonly max: number }
    | { readonly kind: 'behaviour'; readonly step: (symbol: number) => Language }
  );
type Shape<L = Language> = L extends Language ? Omit<L, keyof Common> : never;

/** Makes terms, each once, and steps through them. All terms of one automaton come from one of these. */
export class Languages {
  readonly #made = new Map<string, Language>();
  readonly empty: Language = this.#make('empty', false, { kind: 'empty' });
  readonly epsilon: Language = this.#make('epsilon', true, { kind: 'epsilon' });

  /** One symbol out of the ranges, given in any order. */
  symbols(ranges: readonly Range[]): Language {
    const merged = union(ranges);
    if (merged.length === 0) return this.empty;
    return this.#make(`symbols ${merged.join(' ')}`, false, { kind: 'symbols', ranges: merged });
  }

  /** Exactly these symbols, one after the other. */
  word(symbols: Iterable<number>): Language {
    return this.words([[...symbols]]);
  }

  /** Any of the words, in the shape of a trie: a step looks at as many options as there are symbols to begin with. */
  words(words: readonly (readonly number[])[], at = 0): Language {
    const byFirst = new Map<number, (readonly number[])[]>();
    for (const word of words) {
      const first = word[at];
      if (first === undefined) continue;
      const group = byFirst.get(first);
      if (group === undefined) byFirst.set(first, [word]);
      else group.push(word);
    }
    const options = Array.from(byFirst, ([first, group]) =>
      this.sequence(this.symbols([[first, first]]), this.words(group, at + 1)),
    );
    return this.choice(...options, words.some((word) => word.length === at) ? this.epsilon : this.empty);
  }

  sequence(...parts: readonly Language[]): Language {
    return parts.reduceRight((rest, part) => this.#pair(part, rest), this.epsilon);
  }

  choice(...options: readonly Language[]): Language {
    const distinct = new Set<Language>();
    for (const option of options) {
      if (option.kind === 'choice') for (const inner of option.options) distinct.add(inner);
      else if (option !== this.empty) distinct.add(option);
    }
    const sorted = [...distinct].sort((a, b) => a.id - b.id);
    const [only] = sorted;
    if (only === undefined) return this.empty;
    if (sorted.length === 1) return only;
    const key = `choice ${sorted.map((option) => option.id).join(' ')}`;
    return this.#make(
      key,
      sorted.some((option) => option.nullable),
      { kind: 'choice', options: sorted },
    );
  }

  /** `body` from `min` to `max` times, `max` may be Infinity. */
  repeat(body: Language, min: number, max: number): Language {
    if (max === 0 || body === this.epsilon) return this.epsilon;
    if (body === this.empty) return min === 0 ? this.epsilon : this.empty;
    if (min === 1 && max === 1) return body;
    const least = body.nullable ? 0 : min;
    return this.#make(`repeat ${body.id} ${least} ${max}`, least === 0, { kind: 'repeat', body, min: least, max });
  }

  /** A language given by what follows each first symbol. It must have a word; `key` names it. */
  behaviour(key: string, nullable: boolean, step: (symbol: number) => Language): Language {
    return this.#make(key, nullable, { kind: 'behaviour', step });
  }

  /** What may follow `symbol`; `empty` where nothing begins with it. */
  step(language: Language, symbol: number): Language {
    const known = language.derivatives.get(symbol);
    if (known !== undefined) return known;
    const derivative = this.#derive(language, symbol);
    language.derivatives.set(symbol, derivative);
    return derivative;
  }

  /** Ascending symbols such that `step` gives the same for all symbols from one up to the next. Without `behaviour` terms only. */
  cuts(language: Language): readonly number[] {
    const cuts = new Set<number>();
    const visit = (term: Language): void => {
      if (term.kind === 'symbols') for (const [low, high] of term.ranges) cuts.add(low).add(high + 1);
      else if (term.kind === 'choice') term.options.forEach(visit);
      else if (term.kind === 'repeat') visit(term.body);
      else if (term.kind === 'sequence') {
        visit(term.first);
        if (term.first.nullable) visit(term.rest);
      }
    };
    visit(language);
    return [...cuts].sort((a, b) => a - b);
  }

  #derive(language: Language, symbol: number): Language {
    switch (language.kind) {
      case 'empty':
      case 'epsilon':
        return this.empty;
      case 'symbols':
        return language.ranges.some(([low, high]) => low <= symbol && symbol <= high) ? this.epsilon : this.empty;
      case 'sequence': {
        const { first, rest } = language;
        const stepped = this.#each(this.step(first, symbol), rest);
        return first.nullable ? this.choice(stepped, this.step(rest, symbol)) : stepped;
      }
      case 'choice':
        return this.choice(...language.options.map((option) => this.step(option, symbol)));
      case 'repeat': {
        const { body, min, max } = language;
        return this.#each(this.step(body, symbol), this.repeat(body, Math.max(min - 1, 0), max - 1));
      }
      case 'behaviour':
        return language.step(symbol);
    }
  }

  /** Each option by itself (partial derivatives, Antimirov 1996): a state is a set out of few terms, not one of many nestings of them. */
  #each(first: Language, rest: Language): Language {
    if (first.kind !== 'choice') return this.#pair(first, rest);
    return this.choice(...first.options.map((option) => this.#pair(option, rest)));
  }

  #pair(first: Language, rest: Language): Language {
    if (first === this.empty || rest === this.empty) return this.empty;
    if (first === this.epsilon) return rest;
    if (rest === this.epsilon) return first;
    if (first.kind === 'sequence') return this.#pair(first.first, this.#pair(first.rest, rest));
    const key = `sequence ${first.id} ${rest.id}`;
    return this.#make(key, first.nullable && rest.nullable, { kind: 'sequence', first, rest });
  }

  #make(key: string, nullable: boolean, shape: Shape): Language {
    const known = this.#made.get(key);
    if (known !== undefined) return known;
    const made: Language = { id: this.#made.size, nullable, derivatives: new Map(), ...shape };
    this.#made.set(key, made);
    return made;
  }
}

/** The same symbols as disjoint ranges in ascending order. */
function union(ranges: readonly Range[]): readonly Range[] {
  const merged: [number, number][] = [];
  for (const [low, high] of [...ranges].sort((a, b) => a[0] - b[0])) {
    const last = merged.at(-1);
    if (last !== undefined && low <= last[1] + 1) last[1] = Math.max(last[1], high);
    else merged.push([low, high]);
  }
  return merged;
}

/** The symbols from 0 to `largest` that are in none of the ranges. */
export function complement(ranges: readonly Range[], largest: number): readonly Range[] {
  const outside: Range[] = [];
  let next = 0;
  for (const [low, high] of union(ranges)) {
    if (next < low) outside.push([next, low - 1]);
    next = high + 1;
  }
  if (next <= largest) outside.push([next, largest]);
  return outside;
}
