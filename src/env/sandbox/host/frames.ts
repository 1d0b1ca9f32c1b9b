/** @module Frames: JSON messages over a byte stream, each behind its length in four bytes (little-endian). What the other side sends is bounded before it is read. */
import { IsogymError, messageOf } from '../../../records/errors.ts';

/** Longest frame [bytes]: a batch of 64 long episodes fits many times over. */
export const MAX_FRAME_BYTES = 64 * 1024 * 1024;

const HEADER = 4;

export function encodeFrame(message: unknown): Buffer {
  const text = JSON.stringify(message);
  const length = Buffer.byteLength(text);
  const frame = Buffer.allocUnsafe(HEADER + length);
  frame.writeUInt32LE(length, 0);
  frame.write(text, HEADER, 'utf8');
  return frame;
}

/** Takes bytes as they come and gives whole messages. */
export class FrameReader {
  readonly #maxBytes: number;
  #chunks: Buffer[] = [];
  #length = 0;

  constructor(maxBytes: number = MAX_FRAME_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** The messages that `chunk` completes, parsed and not looked at further. @throws BROKEN_FRAME where a frame is too long or no JSON. */
  push(chunk: Buffer): unknown[] {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    const messages: unknown[] = [];
    for (let size = this.#next(); size !== undefined; size = this.#next()) {
      if (size > this.#maxBytes) {
        throw new IsogymError('BROKEN_FRAME', `expected a message of at most ${this.#maxBytes} bytes, found ${size}`);
      }
      if (this.#length < HEADER + size) break;
      messages.push(parsed(this.#take(HEADER + size).subarray(HEADER)));
    }
    return messages;
  }

  /** The length that the next frame says it has, once its header is here. */
  #next(): number | undefined {
    if (this.#length < HEADER) return undefined;
    const [first] = this.#chunks;
    if (first !== undefined && first.length >= HEADER) return first.readUInt32LE(0);
    return this.#joined().readUInt32LE(0);
  }

  #take(bytes: number): Buffer {
    const all = this.#joined();
    const rest = all.subarray(bytes);
    this.#chunks = rest.length > 0 ? [rest] : [];
    this.#length = rest.length;
    return all.subarray(0, bytes);
  }

  #joined(): Buffer {
    const [first, ...more] = this.#chunks;
    if (first !== undefined && more.length === 0) return first;
    const all = Buffer.concat(this.#chunks);
    this.#chunks = [all];
    return all;
  }
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch (cause) {
    throw new IsogymError('BROKEN_FRAME', `expected a message in JSON: ${messageOf(cause)}`, { cause });
  }
}
