/** @module The families of js-puzzles: what is asked in words, what solves it in JavaScript, and the inputs it is asked of. */
import type { Json, Random } from '../index.ts';

/** A kind of puzzle with one number to it, `k` in 2…9. `solve` and the function that `source` writes agree on every input. */
export interface Family {
  readonly name: string;
  /** What the function has to do, as a sentence without its subject. */
  describe(k: number): string;
  /** A solution, as the policy could write it. */
  source(k: number): string;
  input(random: Random): Json;
  solve(input: never, k: number): Json;
}

const integer = (random: Random, from: number, to: number) => from + Math.floor(random() * (to - from + 1));
const list = (random: Random) => Array.from({ length: integer(random, 0, 8) }, () => integer(random, -20, 20));
const text = (random: Random) =>
  Array.from({ length: integer(random, 0, 12) }, () => 'abcdefghij '[integer(random, 0, 10)]).join('');
const family = <In extends Json>(one: Omit<Family, 'solve'> & { solve(input: In, k: number): Json }): Family => one;

export const FAMILIES: readonly Family[] = [
  family({
    name: 'sum-multiples',
    describe: (k) => `takes a list of whole numbers and returns the sum of those that are divisible by ${k}`,
    source: (k) => `(list) => list.filter((x) => x % ${k} === 0).reduce((sum, x) => sum + x, 0)`,
    input: list,
    solve: (numbers: readonly number[], k) => numbers.filter((x) => x % k === 0).reduce((sum, x) => sum + x, 0),
  }),
  family({
    name: 'rotate',
    describe: (k) => `takes a list and returns it rotated to the left by ${k} places (an empty list stays empty)`,
    source: (k) =>
      `(list) => { const n = list.length ? ${k} % list.length : 0; return list.slice(n).concat(list.slice(0, n)); }`,
    input: list,
    solve(numbers: readonly number[], k) {
      const by = numbers.length === 0 ? 0 : k % numbers.length;
      return [...numbers.slice(by), ...numbers.slice(0, by)];
    },
  }),
  family({
    name: 'largest',
    describe: (k) =>
      `takes a list of whole numbers and returns its ${k} largest, the largest first (all, where it has fewer)`,
    source: (k) => `(list) => [...list].sort((a, b) => b - a).slice(0, ${k})`,
    input: list,
    solve: (numbers: readonly number[], k) => [...numbers].sort((a, b) => b - a).slice(0, k),
  }),
  family({
    name: 'distinct-remainders',
    describe: (k) =>
      `takes a list of whole numbers and returns how many different remainders they leave when divided by ${k}, all from 0 to ${k - 1}`,
    source: (k) => `(list) => new Set(list.map((x) => ((x % ${k}) + ${k}) % ${k})).size`,
    input: list,
    solve: (numbers: readonly number[], k) => new Set(numbers.map((x) => ((x % k) + k) % k)).size,
  }),
  family({
    name: 'stutter',
    describe: (k) => `takes a text and returns it with every character repeated ${k} times`,
    source: (k) => `(text) => [...text].map((c) => c.repeat(${k})).join('')`,
    input: text,
    solve: (words: string, k) => [...words].map((c) => c.repeat(k)).join(''),
  }),
  family({
    name: 'shift',
    describe: (k) =>
      `takes a text of small letters and spaces and returns it with every letter moved ${k} places on in the alphabet (after z comes a; spaces stay)`,
    source: (k) =>
      `(text) => text.replace(/[a-z]/g, (c) => String.fromCharCode((c.charCodeAt(0) - 97 + ${k}) % 26 + 97))`,
    input: text,
    solve: (words: string, k) =>
      words.replace(/[a-z]/g, (c) => String.fromCharCode(((c.charCodeAt(0) - 97 + k) % 26) + 97)),
  }),
  family({
    name: 'long-words',
    describe: (k) =>
      `takes a text and returns how many of its words, which single or several spaces part, have at least ${k} letters`,
    source: (k) => `(text) => text.split(' ').filter((word) => word.length >= ${k}).length`,
    input: text,
    solve: (words: string, k) => words.split(' ').filter((word) => word.length >= k).length,
  }),
  family({
    name: 'digits',
    describe: (k) =>
      `takes a whole number of at least 0 and returns the list of its digits in base ${k}, the highest first ([0] for 0)`,
    source: (k) => `(n) => [...n.toString(${k})].map(Number)`,
    input: (random) => integer(random, 0, 9999),
    solve: (n: number, k) => [...n.toString(k)].map(Number),
  }),
  family({
    name: 'greatest-power',
    describe: (k) => `takes a whole number of at least 1 and returns the greatest power of ${k} that divides it`,
    source: (k) => `(n) => { let p = 1; while (n % (p * ${k}) === 0) p *= ${k}; return p; }`,
    input: (random) => integer(random, 1, 9999),
    solve(n: number, k) {
      let power = 1;
      while (n % (power * k) === 0) power *= k;
      return power;
    },
  }),
];
