/** @module The safetensors file format (https://github.com/huggingface/safetensors, "Format"): named tensors in one buffer. It knows nothing of models. */
import { IsogymError, messageOf } from '../records/errors.ts';
import { parseJson } from '../records/json.ts';
import type { HostTensor, Weights } from './model.ts';

export interface Safetensors {
  readonly tensors: Weights;
  /** The header's `__metadata__`. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** As in the reference implementation. */
const MAX_HEADER = 100_000_000;
const ALIGNMENT = 8;
const WIDTHS: Readonly<Record<string, number>> = { F32: 4, F16: 2, BF16: 2 };

/** A file with the tensors in the order given, as F32. Deterministic. */
export function writeSafetensors(tensors: Weights, metadata: Readonly<Record<string, string>> = {}): Buffer {
  const header: [string, unknown][] = Object.keys(metadata).length === 0 ? [] : [['__metadata__', metadata]];
  let offset = 0;
  for (const [name, { shape, data }] of Object.entries(tensors)) {
    const size = shape.reduce((a, b) => a * b, 1);
    if (size !== data.length) {
      throw new IsogymError('BAD_TENSOR', `${name}: shape [${shape}] has ${size} elements, the data ${data.length}`);
    }
    header.push([name, { dtype: 'F32', shape, data_offsets: [offset, offset + 4 * size] }]);
    offset += 4 * size;
  }
  const json = Buffer.from(JSON.stringify(Object.fromEntries(header)));
  const padded = Math.ceil(json.length / ALIGNMENT) * ALIGNMENT;
  const file = Buffer.alloc(8 + padded + offset, ' ');
  file.writeBigUInt64LE(BigInt(padded), 0);
  json.copy(file, 8);
  let at = 8 + padded;
  for (const { data } of Object.values(tensors)) {
    Buffer.from(data.buffer, data.byteOffset, data.byteLength).copy(file, at);
    at += data.byteLength;
  }
  return file;
}

/**
 * Every tensor of a file, as float32; reads F32, F16 and BF16. Copies: nothing of the result lies in `file`.
 * @throws BAD_SAFETENSORS where the file is truncated or does not keep to the format: offsets must cover the data without gap or overlap.
 * @throws UNSUPPORTED_DTYPE
 */
export function readSafetensors(file: Buffer): Safetensors {
  const { entries, metadata, dataStart } = readHeader(file);
  let expected = 0;
  for (const { name, from, to } of [...entries].sort((a, b) => a.from - b.from || a.to - b.to)) {
    if (from !== expected) {
      throw bad(`${name}: expected its data to begin at ${expected}, where the last one's ends; found ${from}`);
    }
    expected = to;
  }
  const found = file.length - dataStart;
  if (expected !== found) throw bad(`expected ${expected} bytes of data after the header, found ${found}`);
  return {
    tensors: Object.fromEntries(
      entries.map(({ name, dtype, shape, from, to }): [string, HostTensor] => [
        name,
        { shape, data: decode(dtype, file.subarray(dataStart + from, dataStart + to)) },
      ]),
    ),
    metadata,
  };
}

interface Entry {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  /** Bytes from the start of the data. */
  readonly from: number;
  readonly to: number;
}

function readHeader(file: Buffer): {
  entries: Entry[];
  metadata: Record<string, string>;
  dataStart: number;
} {
  if (file.length < 8) throw bad(`expected at least 8 bytes, found ${file.length}`);
  const length = file.readBigUInt64LE(0);
  if (length > MAX_HEADER) throw bad(`expected a header of at most ${MAX_HEADER} bytes, found one of ${length}`);
  const dataStart = 8 + Number(length);
  if (dataStart > file.length) throw bad(`the header ends at byte ${dataStart}, the file at ${file.length}`);
  let header: unknown;
  try {
    header = parseJson(new TextDecoder('utf-8', { fatal: true }).decode(file.subarray(8, dataStart)));
  } catch (cause) {
    throw bad(`expected a header of JSON in UTF-8, found ${messageOf(cause)}`, cause);
  }
  if (!isObject(header)) throw bad('the header is not an object');
  const entries: Entry[] = [];
  let metadata: Record<string, string> = {};
  for (const [name, value] of Object.entries(header)) {
    if (name !== '__metadata__') {
      entries.push(readEntry(name, value));
    } else if (isObject(value) && Object.values(value).every((text) => typeof text === 'string')) {
      metadata = value as Record<string, string>;
    } else {
      throw bad('__metadata__ is not an object of strings');
    }
  }
  return { entries, metadata, dataStart };
}

function readEntry(name: string, value: unknown): Entry {
  const { dtype, shape, data_offsets: offsets } = isObject(value) ? value : {};
  if (typeof dtype !== 'string') throw bad(`${name}: expected a dtype, found ${JSON.stringify(dtype)}`);
  if (!isCounts(shape)) throw bad(`${name}: expected a shape of whole numbers ≥ 0, found ${JSON.stringify(shape)}`);
  if (!isCounts(offsets) || offsets.length !== 2) {
    throw bad(`${name}: expected data_offsets of two whole numbers ≥ 0, found ${JSON.stringify(offsets)}`);
  }
  const width = WIDTHS[dtype];
  if (width === undefined || !Object.hasOwn(WIDTHS, dtype)) {
    throw new IsogymError(
      'UNSUPPORTED_DTYPE',
      `${name}: expected ${Object.keys(WIDTHS).join(', ')}, found ${dtype.slice(0, 20)}`,
      { hint: 'convert the file to float32 first' },
    );
  }
  const [from = 0, to = 0] = offsets;
  const bytes = shape.reduce((a, b) => a * b, width);
  if (to - from !== bytes) {
    throw bad(`${name}: shape [${shape}] of ${dtype} takes ${bytes} bytes, data_offsets give ${to - from}`);
  }
  return { name, dtype, shape, from, to };
}

function decode(dtype: string, bytes: Buffer): Float32Array {
  // A copy first: the data of a file need not be aligned.
  const copy = new Uint8Array(bytes).buffer;
  if (dtype === 'F32') return new Float32Array(copy);
  const halves = new Uint16Array(copy);
  const out = new Float32Array(halves.length);
  if (dtype === 'BF16') {
    // bfloat16 is the upper half of a float32.
    const bits = new Uint32Array(out.buffer);
    for (const [i, half] of halves.entries()) bits[i] = half << 16;
  } else {
    for (const [i, half] of halves.entries()) out[i] = fromHalf(half);
  }
  return out;
}

/** IEEE 754 binary16. */
function fromHalf(bits: number): number {
  const sign = bits >>> 15 === 0 ? 1 : -1;
  const exponent = (bits >>> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0x1f) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isCounts(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((n) => Number.isSafeInteger(n) && n >= 0);
}

function bad(found: string, cause?: unknown): IsogymError {
  return new IsogymError('BAD_SAFETENSORS', `not a sound safetensors file: ${found}`, {
    hint: 'the file may be truncated: copy it again',
    ...(cause === undefined ? {} : { cause }),
  });
}
