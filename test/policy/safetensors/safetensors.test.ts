import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Weights } from '../../../src/policy/model.ts';
import { readSafetensors, writeSafetensors } from '../../../src/policy/safetensors.ts';

const TWO: Weights = {
  a: { shape: [2, 3], data: Float32Array.of(1, -2, 3.5, 0, 1e-40, Number.POSITIVE_INFINITY) },
  b: { shape: [], data: Float32Array.of(7) },
};

/** A file with this header and this many bytes of data. */
function file(header: unknown, data: Buffer | number = 0, text = JSON.stringify(header)): Buffer {
  const json = Buffer.from(text);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  return Buffer.concat([length, json, typeof data === 'number' ? Buffer.alloc(data) : data]);
}

const entry = (dtype: string, shape: number[], from: number, to: number) => ({
  dtype,
  shape,
  data_offsets: [from, to],
});

describe('safetensors', () => {
  it('gives back what was written, to the bit, with its metadata and in its order', () => {
    const read = readSafetensors(writeSafetensors(TWO, { format: 'pt', seed: '7' }));
    expect(read).toEqual({ tensors: TWO, metadata: { format: 'pt', seed: '7' } });
    expect(Object.keys(read.tensors)).toEqual(['a', 'b']);
  });

  it('gives back any tensors under any names', () => {
    const tensor = fc.array(fc.nat(3), { maxLength: 3 }).chain((shape) => {
      const size = shape.reduce((a, b) => a * b, 1);
      const data = fc.float32Array({ minLength: size, maxLength: size });
      return data.map((values) => ({ shape, data: values }));
    });
    const name = fc.string({ unit: 'grapheme' }).filter((key) => key !== '__metadata__');
    fc.assert(
      fc.property(fc.array(fc.tuple(name, tensor)), (pairs) => {
        const tensors = Object.fromEntries(pairs);
        const { tensors: read } = readSafetensors(writeSafetensors(tensors));
        expect(new Map(Object.entries(read))).toEqual(new Map(Object.entries(tensors)));
      }),
    );
  });

  it('writes the layout of the specification: length, header padded with spaces to eight bytes, data', () => {
    const bytes = writeSafetensors({ b: { shape: [1], data: Float32Array.of(1) } });
    const header = '{"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}';
    expect(bytes.readBigUInt64LE(0)).toBe(56n);
    expect(bytes.subarray(8, 64).toString()).toBe(header.padEnd(56));
    expect(bytes.subarray(64)).toEqual(Buffer.from([0, 0, 0x80, 0x3f]));
  });

  it('reads bfloat16 and half precision, specials and subnormals included', () => {
    const bits = (...values: number[]) => Buffer.from(Uint16Array.from(values).buffer);
    const data = Buffer.concat([
      bits(0x3f80, 0xc040, 0x7f80, 0x0001),
      bits(0x3c00, 0xc200, 0x7bff, 0xfc00, 0x0001, 0x7e00),
    ]);
    const { tensors } = readSafetensors(file({ x: entry('BF16', [4], 0, 8), y: entry('F16', [2, 3], 8, 20) }, data));
    expect([...tensors.x!.data]).toEqual([1, -3, Number.POSITIVE_INFINITY, 2 ** -133]);
    expect([...tensors.y!.data]).toEqual([1, -3, 65504, Number.NEGATIVE_INFINITY, 2 ** -24, Number.NaN]);
    expect(tensors.y!.shape).toEqual([2, 3]);
  });

  it('reads data that is not aligned, and tensors whose header order is not their data order', () => {
    const data = Buffer.from(Float32Array.of(1, 2, 3).buffer);
    const header = { late: entry('F32', [1], 8, 12), early: entry('F32', [2], 0, 8) };
    const { tensors } = readSafetensors(file(header, data, `${JSON.stringify(header)} `));
    expect([...tensors.late!.data, ...tensors.early!.data]).toEqual([3, 1, 2]);
  });

  it('refuses a file that is cut off, at every length', () => {
    const whole = writeSafetensors(TWO, { seed: '7' });
    for (let length = 0; length < whole.length; length++) {
      expect(() => readSafetensors(whole.subarray(0, length)), `${length} bytes`).toThrow(
        /not a sound safetensors file/,
      );
    }
  });

  it.each<[string, Buffer, RegExp]>([
    ['a header longer than the file', Buffer.from([255, 0, 0, 0, 0, 0, 0, 0]), /the header ends at byte 263/],
    ['a header of absurd length', Buffer.alloc(8, 255), /at most 100000000 bytes/],
    ['a header that is not JSON', file(null, 0, '{"a":'), /expected a header of JSON/],
    [
      'a header that is not UTF-8',
      Buffer.concat([file(null, 0, '').fill(2, 0, 1), Buffer.from([0xff, 0xfe])]),
      /expected a header of JSON/,
    ],
    [
      'a header that nests too deep',
      file(null, 0, `{"a":{"dtype":"F32","shape":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`),
      /nests more than 1000 levels/,
    ],
    ['a header that is a list', file([]), /not an object/],
    ['metadata that is not strings', file({ __metadata__: { a: 1 } }), /__metadata__/],
    ['an entry that is null', file({ a: null }), /a: expected a dtype/],
    ['a shape with a fraction', file({ a: entry('F32', [0.5], 0, 2) }, 2), /expected a shape/],
    ['a negative shape', file({ a: entry('F32', [-1], 0, 4) }, 4), /expected a shape/],
    ['three offsets', file({ a: { dtype: 'F32', shape: [1], data_offsets: [0, 4, 8] } }, 8), /data_offsets/],
    ['offsets the wrong way round', file({ a: entry('F32', [1], 4, 0) }, 4), /takes 4 bytes/],
    [
      'offsets that do not fit the shape',
      file({ a: entry('F32', [2], 0, 4) }, 4),
      /takes 8 bytes, data_offsets give 4/,
    ],
    ['a shape whose size overflows', file({ a: entry('F32', [2 ** 52, 2 ** 52, 2 ** 52], 0, 0) }), /takes .* bytes/],
    [
      'tensors that overlap',
      file({ a: entry('F32', [2], 0, 8), b: entry('F32', [1], 4, 8) }, 8),
      /b: expected its data to begin at 8/,
    ],
    ['a gap before the data', file({ a: entry('F32', [1], 4, 8) }, 8), /begin at 0/],
    ['bytes after the data', file({ a: entry('F32', [1], 0, 4) }, 5), /expected 4 bytes of data/],
    [
      'a dtype of the prototype',
      file({ a: entry('constructor', [1], 0, 4) }, 4),
      /expected F32, F16, BF16, found constructor/,
    ],
    ['an integer dtype', file({ a: entry('I64', [1], 0, 8) }, 8), /found I64/],
  ])('refuses %s', (_, bytes, message) => {
    expect(() => readSafetensors(bytes)).toThrow(message);
  });

  it('throws nothing but its own errors on mutated files', () => {
    const whole = writeSafetensors(TWO, { seed: '7' });
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 }),
        (edits) => {
          const bytes = Buffer.from(whole);
          for (const [at, value] of edits) bytes[at] = value;
          try {
            readSafetensors(bytes);
          } catch (error) {
            expect(error).toMatchObject({ code: expect.stringMatching(/^(BAD_SAFETENSORS|UNSUPPORTED_DTYPE)$/) });
          }
        },
      ),
    );
  });

  it('does not write a tensor whose data does not fit its shape', () => {
    expect(() => writeSafetensors({ a: { shape: [3], data: new Float32Array(2) } })).toThrow(
      /has 3 elements, the data 2/,
    );
  });
});
