import fc from 'fast-check';
import { expect, it } from 'vitest';
import { encodeBytes, encodeFrame, FrameReader } from '../../../../src/env/sandbox/host/frames.ts';

it('messages come out as they went in, however the bytes are cut', () => {
  fc.assert(
    fc.property(
      fc.array(fc.jsonValue(), { maxLength: 5 }),
      fc.infiniteStream(fc.integer({ min: 1, max: 9 })),
      (all, cuts) => {
        const bytes = Buffer.concat(all.map(encodeFrame));
        const reader = new FrameReader();
        const out: unknown[] = [];
        for (let at = 0; at < bytes.length; ) {
          const size = cuts.next().value as number;
          out.push(...reader.push(bytes.subarray(at, at + size)));
          at += size;
        }
        expect(JSON.stringify(out)).toBe(JSON.stringify(all));
      },
    ),
  );
});

it('a lone surrogate, a NUL and U+2028 survive', () => {
  const text = '\ud800 \0 \u2028 你好 😀';
  expect(new FrameReader().push(encodeFrame(text))).toEqual([text]);
});

it('a frame that says it is too long is refused before it is read, and one that is no JSON when it is here', () => {
  const header = Buffer.alloc(4);
  header.writeUInt32LE(101);
  expect(() => new FrameReader(100).push(header)).toThrow('at most 100 bytes, found 101');
  const noJson = Buffer.from([1, 0, 0, 0, 0x7b]);
  const long = Buffer.alloc(4);
  long.writeUInt32LE(0x8000_0000 + 101);
  expect(() => new FrameReader(100).push(long)).toThrow('at most 100 bytes, found 101');
  expect(() => new FrameReader().push(noJson)).toThrow('expected a message in JSON');
});

it('bytes come out as bytes, between messages', () => {
  const bytes = Uint8Array.of(0x7b, 0, 255);
  const all = Buffer.concat([encodeFrame('a'), encodeBytes(bytes), encodeFrame('b'), encodeBytes(new Uint8Array())]);
  expect(new FrameReader().push(all)).toEqual(['a', bytes, 'b', new Uint8Array()]);
});

it('bytes have a buffer of their own, in whatever pieces they come', () => {
  const bytes = Uint8Array.from({ length: 300 }, (_, i) => i);
  const stream = Buffer.concat([encodeBytes(bytes), encodeFrame('b'), encodeBytes(bytes)]);
  for (const size of [1, 3, 7, 303, 304, 305, 1000]) {
    const reader = new FrameReader();
    const found: unknown[] = [];
    for (let at = 0; at < stream.length; at += size) found.push(...reader.push(stream.subarray(at, at + size)));
    expect(found).toEqual([bytes, 'b', bytes]);
    for (const one of [found[0], found[2]] as Uint8Array[]) expect(one.buffer.byteLength).toBe(300);
  }
});
