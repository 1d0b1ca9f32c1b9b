/** @module Rows that decode together, operation by operation: they join, are fed, and leave, in one cache. */
import type { NamedTensors } from './model.ts';
import type { Draw, KeptEpisode, Row } from './row.ts';
import { leave, type Place } from './transformer/cache-block.ts';
import type { TransformerConfig } from './transformer/config.ts';
import { DecodeBatch, Decoder } from './transformer/decoder.ts';

export class EagerRows {
  readonly #decoder: Decoder;
  readonly #draw: Draw;
  /** Row r of the batch is `#rows[r]`; those that are done wait in it until it is made anew. */
  #batch: DecodeBatch | undefined;
  #rows: readonly Row[] = [];

  constructor(config: TransformerConfig, weights: NamedTensors, draw: Draw) {
    this.#decoder = new Decoder(config, weights);
    this.#draw = draw;
  }

  get rows(): readonly Row[] {
    return this.#rows;
  }

  /** Feeds `joining` all that they have not been fed, apart from the others, whom their columns would only pad; then they are one batch. */
  async join(joining: readonly Row[]): Promise<void> {
    const batch = new DecodeBatch(
      this.#decoder,
      joining.map(({ episode }) => episode.place),
    );
    for (const { episode } of joining) forget(episode);
    try {
      await this.#feed(batch, joining, (waiting) => Math.max(...waiting));
      this.#merge(batch, joining);
    } catch (error) {
      batch.end();
      throw error;
    }
    this.#park();
  }

  /** Feeds every row. Unequal runs of forced tokens are fed by the shortest: a padded column would cost every row. */
  async step(): Promise<void> {
    const batch = this.#batch;
    if (batch === undefined) return;
    if (this.#rows.some(({ done }) => !done)) await this.#feed(batch, this.#rows, (waiting) => Math.min(...waiting));
    this.#park();
  }

  forget(episode: KeptEpisode): void {
    forget(episode);
  }

  /** Ends the batch; places outside it stay valid. */
  end(): void {
    this.#batch?.end();
    this.#batch = undefined;
    this.#rows = [];
  }

  dispose(): void {
    this.end();
    this.#decoder.dispose();
  }

  async #feed(batch: DecodeBatch, rows: readonly Row[], columns: (waiting: number[]) => number): Promise<void> {
    const waiting = (row: Row, r: number) => row.episode.ids.length - batch.length(r);
    const T = columns(rows.flatMap((row, r) => (row.done ? [] : [waiting(row, r)])));
    const chunks = rows.map((row, r) => (row.done ? [] : row.episode.ids.slice(batch.length(r), batch.length(r) + T)));
    const logits = await batch.feed(chunks);
    for (const [r, row] of rows.entries()) {
      if (row.done || waiting(row, r) > 0) continue;
      this.#draw.fromLogits(row, logits, r * this.#decoder.config.vocabulary);
    }
  }

  /** The rows that go on, and these: one batch. */
  #merge(joined: DecodeBatch, joining: readonly Row[]): void {
    const old = this.#batch;
    const live = [...this.#rows.keys()].filter((r) => this.#rows[r]?.done === false);
    if (old === undefined || live.length === 0) {
      old?.end();
      this.#batch = joined;
      this.#rows = joining;
      return;
    }
    for (const [r, row] of joining.entries()) if (row.done && !row.released) row.episode.place = joined.place(r);
    const going = [...joining.keys()].filter((r) => joining[r]?.done === false);
    const places: readonly (Place | null)[] = [...live.map((r) => old.place(r)), ...going.map((r) => joined.place(r))];
    this.#batch = new DecodeBatch(this.#decoder, places);
    this.#rows = [...live.map((r) => this.#rows[r] as Row), ...going.map((r) => joining[r] as Row)];
    for (const place of places) if (place !== null) leave(place.block);
    old.end();
    joined.end();
  }

  /** Those that are done keep their place; at half the rows or fewer, a copy of the others' cache costs less than their steps. */
  #park(): void {
    const batch = this.#batch;
    if (batch === undefined) return;
    for (const [r, { done, released, episode }] of this.#rows.entries()) {
      if (done && !released) episode.place ??= batch.place(r);
    }
    const live = [...this.#rows.keys()].filter((r) => this.#rows[r]?.done === false);
    if (live.length === 0) this.end();
    else if (2 * live.length <= this.#rows.length) {
      batch.keep(live);
      this.#rows = live.map((r) => this.#rows[r] as Row);
    }
  }
}

function forget(episode: KeptEpisode): void {
  if (episode.place !== null) leave(episode.place.block);
  episode.place = null;
}
