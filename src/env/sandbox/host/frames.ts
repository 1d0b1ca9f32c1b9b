/** @module Frames: messages over a byte stream, each behind its length in four bytes (little-endian), whose highest bit says that it is bytes and not JSON. What the other side sends is bounded before it is read. */
import { IsogymError, messageOf } from '../../../records/errors.ts';

/** Longest frame [bytes]: a batch of 64 long episodes fits many times over. */
export const MAX_FRAME_BYTES = 64 * 1024 * 1024;

const HEADER = 4;
const BYTES = 0x8000_0000;

export function encodeFrame(message: unknown): Buffer {
  const text = JSON.stringify(message);
  const length = Buffer.byteLength(text);
  const frame = Buffer.allocUnsafe(HEADER + length);
  frame.writeUInt32LE(length, 0);
  frame.write(text, HEADER, 'utf8');
  return frame;
}

export function encodeBytes(bytes: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(HEADER + bytes.length);
  frame.writeUInt32LE((BYTES | bytes.length) >>> 0, 0);
  frame.set(bytes, HEADER);
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

  /** The messages that `chunk` completes: those in JSON parsed and not looked at further, those in bytes as they are. @throws BROKEN_FRAME where a frame is too long or no JSON. */
  push(chunk: Buffer): unknown[] {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    const messages: unknown[] = [];
    for (let header = this.#next(); header !== undefined; header = this.#next()) {
      const size = header % BYTES;
      if (size > this.#maxBytes) {
        throw new IsogymError('BROKEN_FRAME', `expected a message of at most ${this.#maxBytes} bytes, found ${size}`);
      }
      if (this.#length < HEADER + size) break;
      const body = this.#take(HEADER + size).subarray(HEADER);
      messages.push(header < BYTES ? parsed(body) : body);
    }
    return messages;
  }

  /** What the next frame says of itself, once its header is here. */
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
