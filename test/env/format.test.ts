import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { type Format, formatOf } from '../../src/env/format.ts';
import { defineTool, type Tool } from '../../src/env/tool.ts';
import type { IsogymError } from '../../src/records/errors.ts';
import type { JsonObject } from '../../src/records/json.ts';

const tool = (name: string, shape: z.ZodRawShape): Tool =>
  defineTool({ name, description: name, parameters: z.object(shape), effect: 'read' });
const tools = [tool('lookup', { key: z.string() }), tool('wait', { seconds: z.number() })];
const json = formatOf({
  name: 'test',
  tools: [...tools, tool('pair', { a: z.string(), b: z.string() })],
  format: 'json',
});
const compact = formatOf({ name: 'test', tools, format: 'compact' });

const record = (callId: string, observation: string) => ({
  callId,
  tool: 'lookup',
  states: ['issued' as const],
  attempts: 1,
  observation,
});

/** Any string that JavaScript can hold, lone surrogates included. */
const anyString = fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)) });
const FIELD = ['你好', '😀', 'a\u2028b', 'nul\0', '\ud800 alone', '\udc00', '"quoted" \\ and\nlines'];

it('an outline is what the text reads as', () => {
  const call = fc.oneof(fc.record({ tool: anyString, args: fc.dictionary(anyString, fc.jsonValue()) }), fc.jsonValue());
  const texts = fc.oneof(
    anyString,
    anyString.map((text) => `answer ${text}`),
    fc.oneof(fc.record({ final: anyString }), fc.array(call), call).map((value) => JSON.stringify(value)),
  );
  fc.assert(
    fc.property(texts, (text) => {
      for (const format of [compact, json]) {
        const { calls, final } = format.parse(text, 1);
        expect(format.outline(text)).toEqual({ calls: calls.length, final });
      }
    }),
    { numRuns: 500, seed: 1 },
  );
});

it('an outline reads its text once, and not each of its calls', () => {
  const parse = vi.spyOn(JSON, 'parse');
  expect(json.outline(`[${Array(100).fill('{"tool":"lookup","args":{}}').join()}]`)).toEqual({ calls: 100 });
  const { length } = parse.mock.calls;
  parse.mockRestore();
  expect(length).toBe(1);
});

describe('compact', () => {
  it('writes a call as name and value, an answer as answer and value, and reads them back', () => {
    const call = { calls: [{ tool: 'lookup', arguments: { key: 'Oslo' } }] };
    expect(compact.action(call)).toBe('lookup Oslo');
    expect(compact.parse('lookup Oslo', 4)).toEqual({
      text: 'lookup Oslo',
      calls: [{ id: 'call-4', name: 'lookup', arguments: { key: 'Oslo' }, raw: 'Oslo' }],
    });
    expect(compact.action({ final: '4600' })).toBe('answer 4600');
    expect(compact.parse('answer 4600', 1)).toEqual({ text: 'answer 4600', calls: [], final: '4600' });
    expect(compact.parse('answer ', 1).final).toBe('');
    expect(compact.parse('wait 1.5', 1).calls[0]?.arguments).toEqual({ seconds: 1.5 });
    expect(compact.action({ calls: [{ tool: 'wait', arguments: { seconds: 1.5 } }] })).toBe('wait 1.5');
  });

  it('gives the prompt and the observation bare', () => {
    expect(compact.prompt({ id: 't', prompt: 'Why?', public: null })).toBe('Why?');
    expect(compact.observation([record('call-1', '12')])).toBe('12');
  });

  it('refuses, by what does not fit, tools and actions that it cannot write', () => {
    const refusal = (run: () => unknown) => {
      try {
        run();
      } catch (error) {
        return (error as IsogymError).code;
      }
    };
    const made = (...tools: Tool[]) => formatOf({ name: 'test', tools, format: 'compact' });
    expect(refusal(() => made(tool('pair', { a: z.string(), b: z.string() })))).toBe('INVALID_FORMAT');
    expect(refusal(() => made(tool('none', {})))).toBe('INVALID_FORMAT');
    expect(refusal(() => made(tool('answer', { a: z.string() })))).toBe('INVALID_FORMAT');
    expect(refusal(() => compact.action({ calls: [] }))).toBe('INVALID_ACTION');
    expect(refusal(() => compact.action({ calls: [{ tool: 'lookup', arguments: { kye: 'x' } }] }))).toBe(
      'INVALID_ACTION',
    );
  });

  it.each(['', 'lookup', 'answer', 'fly home', 'wait soon'])('%j is one malformed call, not an error', (text) => {
    const action = compact.parse(text, 1);
    expect(action.final).toBeUndefined();
    expect(action.calls).toHaveLength(1);
    expect(action.calls[0]).toMatchObject({ id: 'call-1', arguments: null });
    expect(action.calls[0]?.malformed).toContain('expected');
  });
});

describe('json', () => {
  it('writes a call, several calls and an answer, arguments in declared order, and reads them back', () => {
    expect(json.action({ calls: [{ tool: 'pair', arguments: { b: '2', a: '1' } }] })).toBe(
      '{"tool":"pair","args":{"a":"1","b":"2"}}',
    );
    expect(json.action({ final: '4600' })).toBe('{"final":"4600"}');
    const several = json.action({
      calls: ['x', 'y'].map((key) => ({ tool: 'lookup', arguments: { key } })),
    });
    expect(several).toBe('[{"tool":"lookup","args":{"key":"x"}},{"tool":"lookup","args":{"key":"y"}}]');
    expect(json.parse(several, 3).calls).toEqual([
      { id: 'call-3', name: 'lookup', arguments: { key: 'x' }, raw: '{"key":"x"}' },
      { id: 'call-4', name: 'lookup', arguments: { key: 'y' }, raw: '{"key":"y"}' },
    ]);
  });

  it('begins the prompt with the schema of every tool, and how to write', () => {
    const one = formatOf({ name: 'test', tools: [tool('lookup', { key: z.enum(['x', 'y']) })], format: 'json' });
    expect(one.prompt({ id: 't', prompt: 'Why?', public: null })).toMatchInlineSnapshot(`
      "Tools, a JSON Schema each:
      {"name":"lookup","description":"lookup","parameters":{"type":"object","properties":{"key":{"type":"string","enum":["x","y"]}},"required":["key"],"additionalProperties":false}}
      Write {"tool": <name>, "args": {…}}, an array of such calls, or {"final": <text>} alone.

      Why?
      "
    `);
  });

  it('puts observations on lines, with the call id where there are several', () => {
    expect(json.observation([record('call-1', '12')])).toBe('12\n');
    expect(json.observation([record('call-1', '12'), record('call-2', '13')])).toBe('call-1: 12\ncall-2: 13\n');
  });

  it.each([
    ['', ''],
    ['{"tool":"lookup","args":{"key":"x"', ''],
    ['[]', ''],
    ['4600', ''],
    ['{"final":4600}', ''],
    ['{"final":"1","tool":"lookup"}', 'lookup'],
    ['{"tool":"lookup"}', 'lookup'],
    ['{"tool":"lookup","args":["x"]}', 'lookup'],
    ['{"tool":"lookup","args":{},"because":"I can"}', 'lookup'],
  ])('%j is one malformed call that keeps its text, not an error', (text, name) => {
    const action = json.parse(text, 1);
    expect(action.final).toBeUndefined();
    expect(action.calls).toEqual([{ id: 'call-1', name, arguments: null, raw: text, malformed: expect.any(String) }]);
    expect(action.calls[0]?.malformed).toContain('expected {"tool": <name>, "args": {…}}');
  });

  it('case 15: in an array, only the call that cannot be read is malformed', () => {
    const { calls } = json.parse('[{"tool":"lookup","args":{"key":"x"}}, {"tool":5}, {"final":"no"}]', 1);
    expect(calls.map((call) => [call.id, call.name, call.arguments])).toEqual([
      ['call-1', 'lookup', { key: 'x' }],
      ['call-2', '', null],
      ['call-3', '', null],
    ]);
    expect(calls[1]?.raw).toBe('{"tool":5}');
  });
});

it('arguments are read to as many levels as a JSON value may have, and are a malformed call beyond, to the letter', () => {
  const list = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
  for (const levels of [499, 500, 100_000]) {
    // Brackets in texts and beside one another are no levels.
    const args = `{"key":${list(levels)},"text":"${'['.repeat(600)}\\"","rest":[${'[],'.repeat(600)}[]]}`;
    const action = json.parse(`[{"tool":"lookup","args":${args}},{"tool":"wait","args":{}}]`, 1);
    const spaced = compact.parse(`wait ${list(levels)}`, 1);
    if (levels === 499) {
      expect(action.calls[0]).toMatchObject({ raw: args, arguments: JSON.parse(args) as JsonObject });
      expect(spaced.calls[0]).toMatchObject({ arguments: { seconds: JSON.parse(list(levels)) } });
      continue;
    }
    const malformed = expect.stringContaining('found arguments that nest more than 500 levels deep') as string;
    expect(action.calls).toEqual([
      { id: 'call-1', name: 'lookup', arguments: null, raw: `{"tool":"lookup","args":${args}}`, malformed },
      { id: 'call-2', name: 'wait', arguments: {}, raw: '{}' },
    ]);
    expect(spaced.calls).toEqual([{ id: 'call-1', name: 'wait', arguments: null, raw: list(levels), malformed }]);
  }
  // The last of equal keys is the one that is read.
  const twice = json.parse(`{"tool":"lookup","args":{"key":${list(600)}},"args":{"key":"x"}}`, 1);
  expect(twice.calls[0]?.arguments).toEqual({ key: 'x' });
  expect(json.parse(`[${list(100_000)}]`, 1).calls[0]?.arguments).toBeNull();
});

describe('case 18: what the policy wrote is kept to the letter', () => {
  it('raw is the source of the arguments, spaces, escapes, key order and repeated keys included', () => {
    const raw = '{ "key" : "\\u4f60好" , "n":1.50, "key":\t"😀\\n" }';
    const action = json.parse(`  {"args" : ${raw} , "tool" : "lookup"} `, 1);
    expect(action.calls).toEqual([{ id: 'call-1', name: 'lookup', arguments: { n: 1.5, key: '😀\n' }, raw }]);
  });

  const roundTrip = (format: Format, key: string) => {
    const text = format.action({ calls: [{ tool: 'lookup', arguments: { key } }] });
    const action = format.parse(text, 1);
    expect(action.text).toBe(text);
    expect(action.calls[0]?.arguments).toEqual({ key });
    expect(format.parse(format.action({ final: key }), 1).final).toBe(key);
    return action.calls[0]?.raw;
  };

  it.each(FIELD)('%j goes through both formats unchanged', (key) => {
    expect(roundTrip(compact, key)).toBe(key);
    expect(roundTrip(json, key)).toBe(JSON.stringify({ key }));
    expect(json.parse(`{"tool":"lookup","args":{"key":"${key.replace(/[\\"\n\0]/g, '')}"}}`, 1).calls[0]?.raw).toBe(
      `{"key":"${key.replace(/[\\"\n\0]/g, '')}"}`,
    );
  });

  it('so does any string, and any JSON', () => {
    fc.assert(fc.property(anyString, (key) => void [roundTrip(compact, key), roundTrip(json, key)]));
    fc.assert(
      fc.property(fc.dictionary(anyString, fc.jsonValue()), fc.constantFrom('', ' ', '\n\t'), (args, space) => {
        const raw = JSON.stringify(args, null, space);
        const [call] = json.parse(`{"tool":"x",${space}"args":${raw}}`, 1).calls;
        expect(call?.raw).toBe(raw);
        expect(call?.arguments).toEqual(JSON.parse(raw) as JsonObject);
      }),
    );
  });

  it('any text at all is an action', () => {
    fc.assert(
      fc.property(
        anyString,
        fc.constantFrom('', '{"tool":"lookup","args":', '[', 'lookup ', '{"final":'),
        (text, start) => {
          for (const format of [compact, json]) {
            const action = format.parse(start + text, 1);
            expect(action.text).toBe(start + text);
            expect(action.calls.length > 0 || action.final !== undefined).toBe(true);
          }
        },
      ),
    );
  });
});

describe('a text that is read again', () => {
  it('comes to the same, its calls numbered anew, its arguments one object that nobody can change', () => {
    for (const [format, text] of [
      [compact, 'wait [1,{"a":2}]'],
      [json, '[{"tool":"pair","args":{"b":[1]}},{"tool":"wait","args":{}}]'],
      [json, '{"tool":"lookup","args":{"key":"x"}} no'],
      [compact, 'answer 1'],
    ] as const) {
      const [first, second] = [format.parse(text, 1), format.parse(text, 5)];
      const anew = (call: { readonly id: string }) => ({ ...call, id: `call-${Number(call.id.slice(5)) + 4}` });
      expect(second).toEqual({ ...first, calls: first.calls.map(anew) });
      expect(Object.keys(second)).toEqual(Object.keys(first));
      for (const [i, call] of first.calls.entries()) {
        expect(call.arguments).toBe(second.calls[i]!.arguments);
        if (call.arguments !== null) expect(Object.values(call.arguments).every(Object.isFrozen)).toBe(true);
        expect(Object.isFrozen(call.arguments)).toBe(true);
      }
    }
  });
});
