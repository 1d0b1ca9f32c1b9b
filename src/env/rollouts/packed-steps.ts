/** @module What a packed episode holds, made when it is first read. All of it has been checked by `unpack.ts`: here nothing can be wrong. */
import type { Action } from '../../records/action.ts';
import type { CallRecord, CallState, Episode, Segment, Step } from '../../records/trajectory.ts';
import type { Contents } from '../../records/unread.ts';
import type { Format } from '../format.ts';
import { ABSENT, HASH, STATES } from './packed.ts';

/** Episodes that came together, and what their owner knows of them. */
export interface Chunk {
  readonly logprobs: Float64Array;
  readonly integers: Int32Array;
  readonly text: Buffer;
  /** Bytes of a character: 1 or 2. */
  readonly width: number;
  readonly format: Format;
  /** Of the policy. */
  readonly version: number;
}

/** The characters from one place to another, as a text of its own: one that was cut out of the chunk's would keep all of that. */
export function textOf({ text, width }: Pick<Chunk, 'text' | 'width'>, from: number, to: number): string {
  return text.toString(width === 1 ? 'latin1' : 'utf16le', from * width, to * width);
}

/** Where an episode's steps are in a chunk. */
export interface Place {
  readonly integer: number;
  readonly logprob: number;
  /** The first character and one past the last. */
  readonly from: number;
  readonly to: number;
}

/** The few courses that a call can take, kept once each. */
const COURSES = new Map<number, readonly CallState[]>();

type Body = Pick<Episode, 'steps' | 'segments'>;

export class PackedSteps implements Contents {
  readonly count: number;
  /** Until it is made: a record that is kept keeps nothing of the other episodes. */
  #packed: { readonly chunk: Chunk; readonly at: Place } | undefined;
  #body: Body | undefined;

  /** @param at from where the segment begins */
  constructor(chunk: Chunk, at: Place, count: number) {
    this.#packed = { chunk, at };
    this.count = count;
  }

  read(): Body {
    if (this.#packed !== undefined) {
      this.#body = new Maker(this.#packed.chunk, this.#packed.at).make();
      this.#packed = undefined;
    }
    return this.#body as Body;
  }
}

class Maker {
  readonly #chunk: Chunk;
  readonly #text: string;
  #integer: number;
  #logprob: number;
  #character = 0;

  constructor(chunk: Chunk, { integer, logprob, from, to }: Place) {
    this.#chunk = chunk;
    this.#text = textOf(chunk, from, to);
    this.#integer = integer;
    this.#logprob = logprob;
  }

  make(): Body {
    const segment = this.#segment();
    const count = this.#next();
    const steps: Step[] = [];
    for (let index = 0, callId = 1; index < count; index++) {
      const step = this.#step(index, callId, segment);
      callId += step.calls.length;
      steps.push(step);
    }
    return { steps, segments: segment === undefined ? [] : [segment] };
  }

  /** Given by the environment until a step says that it sampled them. */
  #segment(): Writable | undefined {
    const length = this.#next();
    const trainable = this.#next() === 1;
    if (length === ABSENT) return undefined;
    const ids = Array.from(this.#chunk.integers.subarray(this.#integer, this.#integer + length));
    this.#integer += length;
    const none = () => new Array<null>(length).fill(null);
    return { ids, actionMask: new Array<0>(length).fill(0), logprobs: none(), policyVersion: none(), trainable };
  }

  #step(index: number, callId: number, segment: Writable | undefined): Step {
    const { format, version, logprobs } = this.#chunk;
    const cutOff = this.#next() === 1;
    const text = this.#some();
    const action: Action = cutOff ? { text, calls: [] } : format.parse(text, callId);
    const start = this.#next();
    const end = this.#next();
    for (let i = start; i < end && segment !== undefined; i++) {
      segment.actionMask[i] = 1;
      segment.policyVersion[i] = version;
      if (segment.trainable) segment.logprobs[i] = logprobs[this.#logprob++] as number;
    }
    // As many as the action has calls.
    this.#next();
    const calls = action.calls.map((call) => this.#record(call.id, call.name));
    return { index, action, calls, tokens: { segment: 0, start, end }, hash: this.#take(HASH) };
  }

  #record(callId: string, tool: string): CallRecord {
    const states = this.#states();
    const attempts = this.#next();
    const observation = this.#some();
    const error = this.#next();
    const why = error === ABSENT ? undefined : this.#take(error);
    const times = this.#next();
    return {
      callId,
      tool,
      states,
      attempts,
      observation,
      ...(why === undefined ? {} : { error: why }),
      ...(times === ABSENT ? {} : { retried: Array.from({ length: times }, () => this.#some()) }),
    };
  }

  #states(): readonly CallState[] {
    const count = this.#next();
    let course = 1;
    for (let i = 0; i < count; i++) course = course * 8 + this.#next();
    const known = COURSES.get(course);
    if (known !== undefined) return known;
    const states: CallState[] = [];
    for (let rest = course; rest > 1; rest = Math.floor(rest / 8)) states.unshift(STATES[rest % 8] as CallState);
    if (COURSES.size < 100) COURSES.set(course, Object.freeze(states));
    return states;
  }

  #some(): string {
    return this.#take(this.#next());
  }

  #take(length: number): string {
    this.#character += length;
    return this.#text.slice(this.#character - length, this.#character);
  }

  #next(): number {
    return this.#chunk.integers[this.#integer++] as number;
  }
}

interface Writable extends Segment {
  readonly actionMask: (0 | 1)[];
  readonly logprobs: (number | null)[];
  readonly policyVersion: (number | null)[];
}
