/** @module Rows that decode together as recorded graphs: each in a slot of the decoder, sampled there. */
import { IsogymError } from '../records/errors.ts';
import type { NamedTensors } from './model.ts';
import type { Draw, KeptEpisode, Row } from './row.ts';
import type { ReplayedDecoder, Sampled } from './transformer/replayed-decoder.ts';

export class ReplayedRows {
  readonly #decoder: ReplayedDecoder;
  readonly #weights: NamedTensors;
  readonly #draw: Draw;
  /** Slots are valid as long as it is this one's weights that are loaded. */
  readonly #owner = {};
  #rows: readonly Row[] = [];

  constructor(decoder: ReplayedDecoder, weights: NamedTensors, draw: Draw) {
    this.#decoder = decoder;
    this.#weights = weights;
    this.#draw = draw;
  }

  get rows(): readonly Row[] {
    return this.#rows;
  }

  /** @param kept all episodes: where another's weights were loaded meanwhile, none has a slot any more. */
  async join(joining: readonly Row[], kept: Iterable<KeptEpisode>): Promise<void> {
    this.#check();
    if (!this.#decoder.isLoaded(this.#owner)) {
      for (const episode of kept) episode.slot = null;
      this.#decoder.load(this.#owner, this.#weights);
    }
    const longest = Math.max(...joining.map(({ episode }) => episode.ids.length));
    this.#decoder.reserve(joining.filter(({ episode }) => episode.slot === null).length, longest);
    for (const { episode } of joining) episode.slot ??= this.#decoder.open();
    this.#feed(joining, Math.max(...joining.map((row) => this.#waiting(row))));
    this.#rows = [...this.#rows, ...joining].filter((row) => !row.done);
  }

  /** Feeds every row, by the shortest run of forced tokens. */
  async step(): Promise<void> {
    this.#check();
    const live = this.#rows.filter((row) => !row.done);
    if (live.length > 0) this.#feed(live, Math.min(...live.map((row) => this.#waiting(row))));
    this.#rows = live.filter((row) => !row.done);
  }

  forget(episode: KeptEpisode): void {
    if (episode.slot !== null && this.#decoder.isLoaded(this.#owner)) this.#decoder.close(episode.slot);
    episode.slot = null;
  }

  end(): void {
    this.#rows = [];
  }

  /** The decoder is its owner's. */
  dispose(): void {
    this.end();
  }

  /** Another policy may take the decoder between two actions, and not while one is being written: its cache would be gone. */
  #check(): void {
    if (this.#rows.length === 0 || this.#decoder.isLoaded(this.#owner)) return;
    throw new IsogymError(
      'POLICY_BUSY',
      'expected a decoder with these weights, found that another policy has loaded its own',
      {
        hint: 'Let a policy finish its actions before another one with the same decoder begins.',
      },
    );
  }

  #waiting({ episode }: Row): number {
    return episode.ids.length - this.#decoder.length(episode.slot ?? 0);
  }

  #feed(rows: readonly Row[], T: number): void {
    this.#decoder.reserve(0, Math.max(...rows.map(({ episode }) => episode.ids.length)));
    const fed = rows.map((row) => {
      const slot = row.episode.slot ?? 0;
      const known = this.#decoder.length(slot);
      const tokens = row.episode.ids.slice(known, known + T);
      const samples = known + tokens.length === row.episode.ids.length;
      return { samples, step: { slot, tokens, state: row.state, uniform: samples ? this.#draw.uniform(row) : 0 } };
    });
    const drawn = this.#decoder.step(fed.map(({ step }) => step));
    for (const [i, row] of rows.entries()) if (fed[i]?.samples) this.#draw.take(row, drawn[i] as Sampled);
  }
}
