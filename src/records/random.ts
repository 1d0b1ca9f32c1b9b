/** @module Seeds: every generator is derived by name from one run seed, so that nothing depends on order or timing. */
import seedrandom from 'seedrandom';

/** A generator of uniforms in [0, 1), 53 bits. */
export type Random = () => number;

/** A child seed: the path of what it is for, e.g. `deriveSeed(run, 'episode', 3, 'task-7', 0)`. Parts are escaped, so distinct paths never collide. */
export function deriveSeed(seed: string, ...path: readonly (string | number)[]): string {
  let derived = seed;
  for (const part of path) derived += `/${escaped(String(part))}`;
  return derived;
}

function escaped(part: string): string {
  return /^[\w-]*$/.test(part) ? part : encodeURIComponent(part.toWellFormed());
}

/** A generator seeded by a string (seedrandom's Alea, 32 bits a draw, two draws per 53-bit double). */
export function generator(seed: string): Random {
  // Seeded when it is first asked: many episodes never ask.
  let alea: { double(): number } | undefined;
  return () => {
    alea ??= seedrandom.alea(seed);
    return alea.double();
  };
}

/** Fisher–Yates; returns a new array. */
export function shuffled<T>(items: readonly T[], random: Random): T[] {
  const out = [...items];
  for (let i = out.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    const a = out[i] as T;
    out[i] = out[j] as T;
    out[j] = a;
  }
  return out;
}
