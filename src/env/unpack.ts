/** @module Reads episodes out of the layout of `packed.ts`, in their owner's thread, as if an attacker had written them. */
import {
  type CallRecord,
  type CallState,
  type Episode,
  type Segment,
  type Step,
  TRAJECTORY_FORMAT,
} from '../records/trajectory.ts';
import type { Format } from './format.ts';
import { ABSENT, FAILURES, HASH, HEADER, STATES, STOPS } from './packed.ts';
import type { RolloutRequest } from './rollouts.ts';
import { untrusted } from './sandbox/host/protocol.ts';
import type { KnownBounds } from './untrusted.ts';

const COURSES = new Map<number, readonly CallState[]>();

/** What the owner knows of the episodes. */
export interface Known {
  readonly format: Format;
  /** The policy's name and version in records. */
  readonly name: string;
  readonly version: number;
  readonly bounds: KnownBounds;
}

/** One episode for each request, in order. @throws UNTRUSTED */
export function unpackEpisodes(
  bytes: Uint8Array,
  requests: readonly RolloutRequest[],
  known: Known,
): readonly Episode[] {
  const reader = new Reader(bytes, known);
  const episodes = requests.map((request) => reader.episode(request));
  reader.end();
  return episodes;
}

class Reader {
  readonly #logprobs: Float64Array;
  readonly #integers: Int32Array;
  readonly #text: string;
  readonly #known: Known;
  #logprob = 0;
  #integer = 0;
  #character = 0;

  constructor(bytes: Uint8Array, known: Known) {
    const { buffer, byteOffset, byteLength } = bytes.byteOffset % 8 === 0 ? bytes : bytes.slice();
    if (byteLength < HEADER) throw untrusted('packed episodes');
    const [logprobs = 0, integers = 0, text = 0, width = 0] = new Int32Array(buffer, byteOffset, 4);
    const atIntegers = HEADER + logprobs * 8;
    const atText = atIntegers + integers * 4;
    const whole = [logprobs, integers, text].every((n) => n >= 0) && (width === 1 || width === 2);
    if (!whole || atText + text !== byteLength || text % width !== 0) throw untrusted('packed episodes');
    this.#logprobs = new Float64Array(buffer, byteOffset + HEADER, logprobs);
    this.#integers = new Int32Array(buffer, byteOffset + atIntegers, integers);
    this.#text = Buffer.from(buffer, byteOffset + atText, text).toString(width === 1 ? 'latin1' : 'utf16le');
    this.#known = known;
  }

  episode({ id, group, task, iteration, rollout, seed }: RolloutRequest): Episode {
    const { bounds, name } = this.#known;
    const stop = this.#oneOf(STOPS, 'a stop reason');
    const failure = this.#peek() === ABSENT ? this.#skip() : this.#oneOf(FAILURES, 'a failure');
    const stopDetail = this.#maybe();
    if ((stop === 'sandbox-failure') !== (failure !== undefined)) throw untrusted('a failure with its kind');
    const length = this.#next(ABSENT, bounds.maxTokens, 'ids');
    const trainable = this.#next(0, 1, 'trainable') === 1;
    const segment = length === ABSENT ? undefined : this.#segment(length, trainable);
    const count = this.#next(0, bounds.maxSteps, 'steps');
    const steps: Step[] = [];
    let final: string | undefined;
    let callId = 1;
    let covered = 0;
    for (let index = 0; index < count; index++) {
      const step = this.#step(index, callId, covered, segment, index === count - 1);
      callId += step.action.calls.length;
      covered = step.tokens.end;
      final = step.action.final;
      if (final !== undefined && index < count - 1) throw untrusted('nothing after the final answer');
      steps.push(step);
    }
    if ((stop === 'final') !== (final !== undefined)) throw untrusted('a final answer where it stopped with one');
    const hash = this.#hash();
    return {
      format: TRAJECTORY_FORMAT,
      ...{ id, group, taskId: task.id, iteration, rollout, seed, policy: name, prompt: task.prompt },
      steps,
      segments: segment === undefined ? [] : [segment],
      stop,
      ...(stopDetail === undefined ? {} : { stopDetail }),
      ...(failure === undefined ? {} : { failure }),
      final: final ?? null,
      hash,
    };
  }

  end(): void {
    const done =
      this.#logprob === this.#logprobs.length &&
      this.#integer === this.#integers.length &&
      this.#character === this.#text.length;
    if (!done) throw untrusted('nothing after the last episode');
  }

  /** Given by the environment until a step says that it sampled them. */
  #segment(length: number, trainable: boolean): Writable {
    const { vocabulary } = this.#known.bounds;
    const ids: number[] = [];
    for (let i = 0; i < length; i++) ids.push(this.#next(0, vocabulary - 1, 'ids'));
    return {
      ids,
      actionMask: ids.map(() => 0),
      logprobs: ids.map(() => null),
      policyVersion: ids.map(() => null),
      trainable,
    };
  }

  #step(index: number, callId: number, covered: number, segment: Writable | undefined, last: boolean): Step {
    const { format, version } = this.#known;
    const cutOff = this.#next(0, 1, 'cut off') === 1;
    if (cutOff && !last) throw untrusted('nothing after an action that was cut off');
    const text = this.#some();
    const action = cutOff ? { text, calls: [] } : format.parse(text, callId);
    const start = this.#next(covered, segment?.ids.length ?? 0, 'start');
    const end = this.#next(start, segment?.ids.length ?? 0, 'end');
    for (let i = start; i < end && segment !== undefined; i++) {
      segment.actionMask[i] = 1;
      segment.policyVersion[i] = version;
      if (segment.trainable) segment.logprobs[i] = this.#finite();
    }
    const count = this.#next(0, action.calls.length, 'calls');
    if (count !== action.calls.length) throw untrusted('one record for each call');
    const calls = action.calls.map((call) => this.#record(call.id, call.name));
    return { index, action, calls, tokens: { segment: 0, start, end }, hash: this.#hash() };
  }

  #record(callId: string, tool: string): CallRecord {
    const states = this.#states();
    const attempts = this.#next(0, 2, 'attempts');
    const observation = this.#some();
    const error = this.#maybe();
    const times = this.#next(ABSENT, 2, 'retried');
    return {
      callId,
      tool,
      states,
      attempts,
      observation,
      ...(error === undefined ? {} : { error }),
      ...(times === ABSENT ? {} : { retried: Array.from({ length: times }, () => this.#some()) }),
    };
  }

  /** The few courses that a call can take are kept once. */
  #states(): readonly CallState[] {
    const count = this.#next(0, 10, 'states');
    let course = 1;
    for (let i = 0; i < count; i++) course = course * 8 + this.#next(0, STATES.length - 1, 'a state of a call');
    const known = COURSES.get(course);
    if (known !== undefined) return known;
    const states: CallState[] = [];
    for (let rest = course; rest > 1; rest = Math.floor(rest / 8)) states.unshift(STATES[rest % 8] as CallState);
    if (COURSES.size < 100) COURSES.set(course, Object.freeze(states));
    return states;
  }

  #some(): string {
    const length = this.#next(0, this.#text.length - this.#character, 'a text');
    this.#character += length;
    return this.#text.slice(this.#character - length, this.#character);
  }

  #maybe(): string | undefined {
    return this.#peek() === ABSENT ? this.#skip() : this.#some();
  }

  #hash(): string {
    const from = this.#character;
    this.#character += HASH;
    if (this.#character > this.#text.length) throw untrusted('the links of a hash chain');
    for (let i = from; i < this.#character; i++) {
      const c = this.#text.charCodeAt(i);
      if (!((c >= 48 && c <= 57) || (c >= 97 && c <= 102))) throw untrusted('the links of a hash chain');
    }
    return this.#text.slice(from, this.#character);
  }

  #finite(): number {
    const logprob = this.#logprobs[this.#logprob++];
    if (logprob === undefined || !Number.isFinite(logprob)) throw untrusted('one logprob for each token');
    return logprob;
  }

  #oneOf<T>(all: readonly T[], what: string): T {
    return all[this.#next(0, all.length - 1, what)] as T;
  }

  #peek(): number | undefined {
    return this.#integers[this.#integer];
  }

  #skip(): undefined {
    this.#integer++;
  }

  #next(least: number, most: number, what: string): number {
    const n = this.#integers[this.#integer++];
    if (n === undefined || n < least || n > most) throw untrusted(`${what} from ${least} to ${most}`);
    return n;
  }
}

interface Writable extends Segment {
  readonly actionMask: (0 | 1)[];
  readonly logprobs: (number | null)[];
  readonly policyVersion: (number | null)[];
}
