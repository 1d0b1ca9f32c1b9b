/** @module A grammar as a table of states × tokens that grows by the states that are met: what a recorded decode step samples under. */
import { IsogymError } from '../../records/errors.ts';
import type { Grammar } from '../grammar/index.ts';

/** Stands for −∞, as in the loss. */
const FORBIDDEN = -1e9;
/** Entries, at most: 256 MiB. */
const LARGEST = 2 ** 26;

export class GrammarTable {
  readonly #grammar: Grammar | null;
  readonly #vocabulary: number;
  /** Row for each state. */
  readonly #rows = new Map<number, number>();

  /** @param grammar null: every id may follow every other */
  constructor(grammar: Grammar | null, vocabulary: number) {
    this.#grammar = grammar;
    this.#vocabulary = vocabulary;
  }

  /** How many rows it has. */
  get states(): number {
    return this.#rows.size;
  }

  /** Adds the state's row where it has none. */
  meet(state: number): void {
    if (!this.#rows.has(state)) this.#rows.set(state, this.#rows.size);
  }

  /** The state's row; 0 for one that was never met. */
  row(state: number): number {
    return this.#rows.get(state) ?? 0;
  }

  /** [states, vocabulary], row by row: 0 where a token is allowed, below 0 where it is not. @throws GRAMMAR_TOO_LARGE */
  values(): Float32Array {
    const vocabulary = this.#vocabulary;
    if (this.states * vocabulary > LARGEST) {
      throw new IsogymError(
        'GRAMMAR_TOO_LARGE',
        `expected a grammar whose table fits ${LARGEST} entries, found ${this.states} states of ${vocabulary} tokens`,
        { hint: 'Sample outside the graph: replay: false' },
      );
    }
    const table = new Float32Array(this.states * vocabulary);
    if (this.#grammar === null) return table;
    table.fill(FORBIDDEN);
    for (const [state, row] of this.#rows) {
      for (const id of this.#grammar.allowed(state)) table[row * vocabulary + id] = 0;
    }
    return table;
  }
}
