import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { JsonlWriter, readJsonl } from '../../src/io/jsonl.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'isogym-jsonl-'));
  file = join(folder, 'log.jsonl');
});
afterEach(() => rmSync(folder, { recursive: true }));

async function read(): Promise<{ values: unknown[]; notices: string[] }> {
  const values: unknown[] = [];
  const notices: string[] = [];
  for await (const { value } of readJsonl(file, (notice) => notices.push(notice))) values.push(value);
  return { values, notices };
}

test('any text comes back as it was written, line separators and lone surrogates included (case 18)', async () => {
  const text = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('\u2028', '\ud800', '\n', '\0', '你好 🙂'));
  await fc.assert(
    fc.asyncProperty(fc.array(text), async (texts) => {
      rmSync(file, { force: true });
      const writer = new JsonlWriter(file);
      for (const value of texts) writer.append({ value });
      writer.close();
      expect((await read()).values).toEqual(texts.map((value) => ({ value })));
    }),
  );
});

test('a last line torn at any byte is left out with a notice, and the lines before it are kept', async () => {
  const whole = Buffer.from('{"a":1}\n{"b":"ü"}\n');
  const first = '{"a":1}\n'.length;
  for (let length = 0; length <= whole.length; length++) {
    writeFileSync(file, whole.subarray(0, length));
    const { values, notices } = await read();
    expect(values).toHaveLength(length < first ? 0 : length < whole.length ? 1 : 2);
    expect(notices).toHaveLength([0, first, whole.length].includes(length) ? 0 : 1);
  }
});

test('a notice names file and line', async () => {
  writeFileSync(file, '{"a":1}\n{"b"');
  const { notices } = await read();
  expect(notices[0]?.replace(folder, '')).toBe(
    '/log.jsonl:2: the last line is torn and left out; the run was stopped while it wrote',
  );
});

test('a writer cuts off a torn last line before it appends', async () => {
  writeFileSync(file, `{"a":1}\n${'x'.repeat(200_000)}`);
  const writer = new JsonlWriter(file);
  writer.append({ b: 2 });
  writer.close();
  expect(readFileSync(file, 'utf8')).toBe('{"a":1}\n{"b":2}\n');
});

test('a line that is whole and no JSON is an error with its number', async () => {
  writeFileSync(file, '{"a":1}\n{"b"\n{"c":3}\n');
  await expect(read()).rejects.toMatchObject({
    code: 'RECORD_BROKEN',
    message: expect.stringContaining('log.jsonl:2: '),
  });
});

test('a line that nests too deep for what walks it is an error with its number', async () => {
  const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}\n`;
  writeFileSync(file, nested(1000));
  expect((await read()).values).toHaveLength(1);
  appendFileSync(file, nested(1001));
  await expect(read()).rejects.toMatchObject({
    code: 'RECORD_BROKEN',
    message: `${file}:2: expected one JSON value, found JSON that nests more than 1000 levels deep`,
    hint: expect.any(String),
  });
});

test('lines longer than a read are put together', async () => {
  const long = 'ä'.repeat(300_000);
  const writer = new JsonlWriter(file);
  writer.append(long);
  writer.append(1);
  writer.close();
  expect((await read()).values).toEqual([long, 1]);
});

test('a file that is not there has no lines', async () => {
  expect(await read()).toEqual({ values: [], notices: [] });
});

test('the start of a line is its byte offset', async () => {
  appendFileSync(file, '"ü"\n1\n');
  const starts: number[] = [];
  for await (const { start } of readJsonl(file, () => undefined)) starts.push(start);
  expect(starts).toEqual([0, Buffer.byteLength('"ü"\n')]);
});
