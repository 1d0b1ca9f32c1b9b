/** @module Files of one JSON value a line: appended to by whole lines, read back tolerant of a last line that a kill has torn. */
import {
  closeSync,
  createReadStream,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readSync,
  writeSync,
} from 'node:fs';
import { IsogymError, messageOf } from '../records/errors.ts';
import { parseJson } from '../records/json.ts';

const NEWLINE = 0x0a;

/** Appends to a file; each line is one write. */
export class JsonlWriter {
  private readonly fd: number;

  /** Opens or creates the file; a torn last line is cut off first, so that the next line begins a line. */
  constructor(path: string) {
    this.fd = openSync(path, 'a+');
    const size = fstatSync(this.fd).size;
    const whole = endOfLastLine(this.fd, size);
    if (whole < size) ftruncateSync(this.fd, whole);
  }

  append(value: unknown): void {
    const line = Buffer.from(`${JSON.stringify(value)}\n`);
    for (let at = 0; at < line.length; ) at += writeSync(this.fd, line, at);
  }

  /** Returns once all that was appended is on the disk. */
  sync(): void {
    fsyncSync(this.fd);
  }

  close(): void {
    closeSync(this.fd);
  }
}

/** The offset after the last newline, or 0. */
function endOfLastLine(fd: number, size: number): number {
  const chunk = Buffer.alloc(65_536);
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - chunk.length);
    const read = readSync(fd, chunk, 0, end - start, start);
    const at = chunk.subarray(0, read).lastIndexOf(NEWLINE);
    if (at >= 0) return start + at + 1;
    end = start;
  }
  return 0;
}

export interface JsonlLine {
  readonly value: unknown;
  /** From 1. */
  readonly line: number;
  /** Byte offset of the line's first byte. */
  readonly start: number;
}

/**
 * The lines of a file in order; none where it does not exist. A last line without its newline is left out and told to `onTorn`.
 * Splits at newline bytes alone: `readline` would also split at U+2028, which JSON leaves as it is inside a text.
 * @throws RECORD_BROKEN where a whole line is not JSON, or nests too deep
 */
export async function* readJsonl(path: string, onTorn: (notice: string) => void): AsyncGenerator<JsonlLine> {
  if (!existsSync(path)) return;
  let rest: Buffer[] = [];
  let line = 0;
  let start = 0;
  for await (const chunk of chunksOf(path)) {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      rest.push(chunk.subarray(from, at));
      const bytes = Buffer.concat(rest);
      rest = [];
      from = at + 1;
      line += 1;
      yield { value: parse(bytes.toString(), path, line), line, start };
      start += bytes.length + 1;
    }
    rest.push(chunk.subarray(from));
  }
  if (rest.some((part) => part.length > 0)) {
    onTorn(`${path}:${line + 1}: the last line is torn and left out; the run was stopped while it wrote`);
  }
}

async function* chunksOf(path: string): AsyncGenerator<Buffer> {
  try {
    yield* createReadStream(path) as AsyncIterable<Buffer>;
  } catch (error) {
    throw new IsogymError('RECORD_BROKEN', `${path}: expected a file of records, found ${messageOf(error)}`, {
      cause: error,
      hint: 'Restore the file, or move away what stands in its place.',
    });
  }
}

function parse(text: string, path: string, line: number): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    throw new IsogymError('RECORD_BROKEN', `${path}:${line}: expected one JSON value, found ${messageOf(error)}`, {
      cause: error,
      hint: 'The file was changed by something other than isogym. Take the line out, or restore the file.',
    });
  }
}
