/**
 * @module Reads episodes out of the layout of `packed.ts`, in their owner's thread, as if an attacker had written them. All of it is
 * checked as it comes; what an episode holds is made when it is first read, by `packed-steps.ts`.
 */
import { ownText } from '../../policy/known-texts.ts';
import { type Episode, TRAJECTORY_FORMAT } from '../../records/trajectory.ts';
import { unread } from '../../records/unread.ts';
import type { Format } from '../format.ts';
import { untrusted } from '../sandbox/host/protocol.ts';
import { checkEnd } from './issued.ts';
import { ABSENT, FAILURES, HASH, HEADER, RECORD, STATES, STOPS } from './packed.ts';
import { type Chunk, PackedSteps, textOf } from './packed-steps.ts';
import type { RolloutRequest } from './rollouts.ts';
import { type KnownBounds, MAX_TEXT } from './untrusted.ts';

/** What the owner knows of the episodes. */
export interface Known {
  readonly format: Format;
  /** The policy's name and version in records. */
  readonly name: string;
  readonly version: number;
  readonly bounds: KnownBounds;
  /** Most UTF-16 code units of an action for each of its tokens. */
  readonly longest: number;
  /** Whether the run was. */
  readonly cancelled: boolean;
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

/** By character: 1 where it is a digit of a link. */
const DIGITS = new Uint8Array(256);
for (const digit of '0123456789abcdef') DIGITS[digit.charCodeAt(0)] = 1;

/** An action that was cut off is text alone. */
const NOTHING = { calls: 0, final: undefined } as const;

class Reader {
  readonly #known: Known;
  readonly #chunk: Chunk;
  readonly #logprobs: Float64Array;
  readonly #integers: Int32Array;
  readonly #characters: Uint8Array | Uint16Array;
  readonly #text: string;
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
    this.#known = known;
    this.#logprobs = new Float64Array(buffer, byteOffset + HEADER, logprobs);
    this.#integers = new Int32Array(buffer, byteOffset + atIntegers, integers);
    const at = byteOffset + atText;
    this.#characters = width === 1 ? new Uint8Array(buffer, at, text) : new Uint16Array(buffer, at, text / 2);
    const { format, version } = known;
    const characters = Buffer.from(buffer, at, text);
    this.#chunk = { logprobs: this.#logprobs, integers: this.#integers, text: characters, width, format, version };
    this.#text = textOf(this.#chunk, 0, this.#characters.length);
  }

  episode({ id, group, task, iteration, rollout, seed }: RolloutRequest): Episode {
    const { bounds, longest, name, format, cancelled } = this.#known;
    const stop = STOPS[this.#next(0, STOPS.length - 1, 'a stop reason')] as Episode['stop'];
    checkEnd(stop, undefined, cancelled);
    const kind = this.#next(ABSENT, FAILURES.length - 1, 'a failure');
    if ((stop === 'sandbox-failure') !== (kind !== ABSENT)) throw untrusted('a failure with its kind');
    const detail = this.#length(ABSENT);
    const stopDetail = detail === ABSENT ? undefined : ownText(this.#take(detail));
    const begin = { integer: this.#integer, logprob: this.#logprob, from: this.#character };
    const length = Math.max(0, this.#ids());
    const trainable = this.#integers[begin.integer + 1] === 1;
    const count = this.#next(0, bounds.maxSteps, 'steps');
    let final: string | undefined;
    let covered = 0;
    for (let left = count; left > 0; left--) {
      const cutOff = this.#next(0, 1, 'cut off') === 1;
      if (cutOff && left > 1) throw untrusted('nothing after an action that was cut off');
      const text = this.#take(this.#length(0));
      const start = this.#next(covered, length, 'start');
      covered = this.#next(start, length, 'end');
      // A text of megabytes takes its reader that long.
      if (text.length > (covered - start) * longest) throw untrusted('a text of its tokens');
      if (trainable) this.#sampled(covered - start);
      const calls = this.#next(0, this.#integers.length, 'calls');
      // Before the text is read, which may hold a million of them.
      if (calls * RECORD > this.#integers.length - this.#integer) throw untrusted('one record for each call');
      const outline = cutOff ? NOTHING : format.outline(text);
      if (calls !== outline.calls) throw untrusted('one record for each call');
      final = outline.final;
      if (final !== undefined && left > 1) throw untrusted('nothing after the final answer');
      for (let i = 0; i < calls; i++) this.#record();
      this.#link();
    }
    if ((stop === 'final') !== (final !== undefined)) throw untrusted('a final answer where it stopped with one');
    const to = this.#character;
    this.#link();
    const rest = {
      format: TRAJECTORY_FORMAT,
      id,
      group,
      taskId: task.id,
      iteration,
      rollout,
      seed,
      policy: name,
      prompt: task.prompt,
      stop,
      stopDetail,
      failure: FAILURES[kind],
      final: final === undefined ? null : ownText(final),
      hash: textOf(this.#chunk, to, this.#character),
    } as const;
    return unread(rest, new PackedSteps(this.#chunk, { ...begin, to }, count));
  }

  end(): void {
    const done =
      this.#logprob === this.#logprobs.length &&
      this.#integer === this.#integers.length &&
      this.#character === this.#text.length;
    if (!done) throw untrusted('nothing after the last episode');
  }

  /** The segment: its length or `ABSENT`, whether it is trained on, its ids. */
  #ids(): number {
    const { vocabulary, maxTokens } = this.#known.bounds;
    const length = this.#next(ABSENT, maxTokens, 'ids');
    this.#next(0, 1, 'trainable');
    const end = this.#integer + Math.max(0, length);
    if (end > this.#integers.length) throw untrusted('ids');
    for (let i = this.#integer; i < end; i++) {
      const id = this.#integers[i] as number;
      if (id < 0 || id >= vocabulary) throw untrusted(`ids below ${vocabulary}`);
    }
    this.#integer = end;
    return length;
  }

  #sampled(count: number): void {
    const end = this.#logprob + count;
    if (end > this.#logprobs.length) throw untrusted('one logprob for each token');
    for (let i = this.#logprob; i < end; i++) {
      const logprob = this.#logprobs[i] as number;
      // Written so that NaN fails it too.
      if (!(logprob <= 0 && logprob > Number.NEGATIVE_INFINITY)) throw untrusted('a logprob of at most 0');
    }
    this.#logprob = end;
  }

  #record(): void {
    const states = this.#next(0, 10, 'states');
    for (let i = 0; i < states; i++) this.#next(0, STATES.length - 1, 'a state of a call');
    this.#next(0, 2, 'attempts');
    this.#character += this.#length(0);
    this.#character += Math.max(0, this.#length(ABSENT));
    const retried = this.#next(ABSENT, 2, 'retried');
    for (let i = 0; i < retried; i++) this.#character += this.#length(0);
  }

  #link(): void {
    const end = this.#character + HASH;
    if (end > this.#characters.length) throw untrusted('the links of a hash chain');
    for (let i = this.#character; i < end; i++) {
      if (DIGITS[this.#characters[i] as number] !== 1) throw untrusted('the links of a hash chain');
    }
    this.#character = end;
  }

  /** Of a text that begins at this place. @param least `ABSENT` where there may be none */
  #length(least: 0 | typeof ABSENT): number {
    return this.#next(least, Math.min(MAX_TEXT, this.#text.length - this.#character), 'a text');
  }

  #take(length: number): string {
    this.#character += length;
    return this.#text.slice(this.#character - length, this.#character);
  }

  #next(least: number, most: number, what: string): number {
    const n = this.#integers[this.#integer++];
    if (n === undefined || n < least || n > most) throw untrusted(`${what} from ${least} to ${most}`);
    return n;
  }
}
