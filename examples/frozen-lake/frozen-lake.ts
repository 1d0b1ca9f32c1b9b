/** @module The class, as it would stand in any Gymnasium-style library: `reset(seed)` and `step(action)`, and no word of isogym. */

// S and F are frozen, H is a hole, G the goal; cells are numbered row by row (the 4 × 4 map of Gymnasium's FrozenLake).
const MAP = 'SFFFFHFHFFFHHFFG';
const WIDTH = 4;
const STARTS = [...MAP].flatMap((cell, i) => (cell === 'S' || cell === 'F' ? [i] : []));
/** A bound of its own, as a TimeLimit wrapper would set it. */
const MAX_STEPS = 16;

export interface Settings {
  /** Half of the steps go to one side of where they were meant to. */
  readonly slippery: boolean;
}

/** Left 0, down 1, right 2, up 3. Reward 1 at the goal, else 0. Every attempt starts on a frozen cell of the seed's choice. */
export class FrozenLake {
  readonly #slippery: boolean;
  #random: () => number = () => 0;
  #cell = 0;
  #steps = 0;

  constructor({ slippery }: Settings) {
    this.#slippery = slippery;
  }

  reset(seed: number) {
    this.#random = mulberry32(seed);
    this.#cell = STARTS[Math.floor(this.#random() * STARTS.length)] ?? 0;
    this.#steps = 0;
    return { observation: this.#cell, info: {} };
  }

  step(action: number) {
    const side = this.#slippery ? [0, 0, 1, 3][Math.floor(this.#random() * 4)] : 0;
    const [dx = 0, dy = 0] =
      [
        [-1, 0],
        [0, 1],
        [1, 0],
        [0, -1],
      ][(action + (side ?? 0)) % 4] ?? [];
    const within = (n: number) => Math.min(WIDTH - 1, Math.max(0, n));
    this.#cell = within(Math.floor(this.#cell / WIDTH) + dy) * WIDTH + within((this.#cell % WIDTH) + dx);
    this.#steps++;
    const cell = MAP[this.#cell];
    const terminated = cell === 'H' || cell === 'G';
    return {
      observation: this.#cell,
      reward: cell === 'G' ? 1 : 0,
      terminated,
      truncated: !terminated && this.#steps >= MAX_STEPS,
      info: {},
    };
  }
}

/** A generator of uniforms in [0, 1) out of 32 bits (Tommy Ettinger's mulberry32): all chance of an attempt comes from its seed. */
function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
