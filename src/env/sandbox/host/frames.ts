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
  readonly #header = Buffer.alloc(HEADER);
  /** Of the frame whose header has come. */
  #body: Uint8Array<ArrayBuffer> | undefined;
  /** How much there is of what is being filled: of the body, or of the header where there is none. */
  #filled = 0;

  constructor(maxBytes: number = MAX_FRAME_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /**
   * The messages that `chunk` completes: those in JSON parsed and not looked at further, those in bytes as they are, each in a
   * buffer of its own, so that it can be handed over. @throws BROKEN_FRAME where a frame is too long or no JSON.
   */
  push(chunk: Buffer): unknown[] {
    const messages: unknown[] = [];
    for (let at = 0; at < chunk.length; ) {
      const part = this.#body ?? this.#header;
      const end = Math.min(chunk.length, at + part.length - this.#filled);
      part.set(chunk.subarray(at, end), this.#filled);
      this.#filled += end - at;
      at = end;
      if (this.#filled < part.length) break;
      this.#filled = 0;
      const header = this.#header.readUInt32LE(0);
      this.#body ??= this.#begun(header % BYTES);
      if (part === this.#header && this.#body.length > 0) continue;
      messages.push(header < BYTES ? parsed(this.#body) : this.#body);
      this.#body = undefined;
    }
    return messages;
  }

  #begun(size: number): Uint8Array<ArrayBuffer> {
    if (size <= this.#maxBytes) return new Uint8Array(size);
    throw new IsogymError('BROKEN_FRAME', `expected a message of at most ${this.#maxBytes} bytes, found ${size}`);
  }
}

function parsed(bytes: Uint8Array<ArrayBuffer>): unknown {
  try {
    return JSON.parse(Buffer.from(bytes.buffer).toString('utf8'));
  } catch (cause) {
    throw new IsogymError('BROKEN_FRAME', `expected a message in JSON: ${messageOf(cause)}`, { cause });
  }
}
