/** @module Writes episodes into the layout of `packed.ts`, in the worker, as each of them ends. */
import type { CallRecord, Episode, Segment, Step } from '../../records/trajectory.ts';
import { ABSENT, FAILURES, HEADER, STATES, STOPS } from './packed.ts';

export class EpisodePacker {
  #integers = new Int32Array(4096);
  #count = 0;
  readonly #logprobs: number[] = [];
  #text = '';

  add({ steps, segments, stop, stopDetail, failure, hash }: Episode): void {
    const [segment] = segments;
    this.#put(STOPS.indexOf(stop));
    this.#put(failure === undefined ? ABSENT : FAILURES.indexOf(failure));
    this.#write(stopDetail);
    this.#put(segment?.ids.length ?? ABSENT);
    this.#put(segment?.trainable === true ? 1 : 0);
    for (const id of segment?.ids ?? []) this.#put(id);
    this.#put(steps.length);
    for (const step of steps) this.#step(step, segment);
    this.#text += hash;
  }

  /** The buffer; nothing may be added after. */
  finish(): Uint8Array<ArrayBuffer> {
    const wide = /[^\0-\xff]/.test(this.#text);
    const textBytes = this.#text.length * (wide ? 2 : 1);
    const floats = this.#logprobs.length * 8;
    const bytes = new Uint8Array(HEADER + floats + this.#count * 4 + textBytes);
    new Int32Array(bytes.buffer, 0, 4).set([this.#logprobs.length, this.#count, textBytes, wide ? 2 : 1]);
    new Float64Array(bytes.buffer, HEADER, this.#logprobs.length).set(this.#logprobs);
    new Int32Array(bytes.buffer, HEADER + floats, this.#count).set(this.#integers.subarray(0, this.#count));
    const text = Buffer.from(bytes.buffer, HEADER + floats + this.#count * 4);
    text.write(this.#text, wide ? 'utf16le' : 'latin1');
    return bytes;
  }

  #step({ action, calls, tokens, hash }: Step, segment: Segment | undefined): void {
    this.#put(calls.length === 0 && action.final === undefined ? 1 : 0);
    this.#write(action.text);
    this.#put(tokens.start);
    this.#put(tokens.end);
    if (segment?.trainable === true) {
      for (let i = tokens.start; i < tokens.end; i++) this.#logprobs.push(segment.logprobs[i] ?? Number.NaN);
    }
    this.#put(calls.length);
    for (const record of calls) this.#record(record);
    this.#text += hash;
  }

  #record({ states, attempts, observation, error, retried }: CallRecord): void {
    this.#put(states.length);
    for (const state of states) this.#put(STATES.indexOf(state));
    this.#put(attempts);
    this.#write(observation);
    this.#write(error);
    this.#put(retried?.length ?? ABSENT);
    for (const why of retried ?? []) this.#write(why);
  }

  #write(text: string | undefined): void {
    this.#put(text?.length ?? ABSENT);
    if (text !== undefined) this.#text += text;
  }

  #put(integer: number): void {
    if (this.#count === this.#integers.length) {
      const more = new Int32Array(2 * this.#count);
      more.set(this.#integers);
      this.#integers = more;
    }
    this.#integers[this.#count++] = integer;
  }
}
