import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { comesAgain } from '../../src/env/arguments.ts';
import { formatOf } from '../../src/env/format.ts';
import { finishCall, ToolRegistry as Registry } from '../../src/env/registry.ts';
import type { WorldOutcome, WorldSession } from '../../src/env/sandbox/world-host.ts';
import { defineTool, type Permission, type Tool, type ToolEffect } from '../../src/env/tool.ts';
import { calculate } from '../../src/env/tools/calculator.ts';
import type { ToolCall } from '../../src/records/action.ts';
import type { JsonObject } from '../../src/records/json.ts';

const TASK = { id: 'task', prompt: '', public: { folder: '/tmp/' } };

/** A registry whose executions are run at once. */
class ToolRegistry {
  readonly #registry: Registry;
  readonly #execute: WorldSession['call'];

  constructor(tools: readonly Tool[], execute: WorldSession['call'], maxCalls?: number) {
    this.#registry = new Registry(tools, TASK, maxCalls);
    this.#execute = execute;
  }

  call(call: ToolCall) {
    return finishCall(this.#registry.call(call), { call: this.#execute });
  }
}

const calculator = defineTool({
  name: 'calculator',
  description: 'Arithmetic.',
  parameters: z.object({ expression: z.string() }),
  effect: 'read',
});
const lookup = defineTool({
  name: 'lookup',
  description: 'A fact.',
  parameters: z.object({ key: z.enum(['population_of_x', 'population_of_y']), year: z.int().optional() }),
  effect: 'read',
});

const issued = (name: string, args: JsonObject | null, more: Partial<ToolCall> = {}): ToolCall => ({
  id: 'call-1',
  name,
  arguments: args,
  raw: more.raw ?? JSON.stringify(args),
  ...more,
});

function calculating(_: string, argsJson: string): WorldOutcome {
  try {
    return { status: 'ok', text: calculate((JSON.parse(argsJson) as { expression: string }).expression) };
  } catch (error) {
    return { status: 'error', message: (error as Error).message, transient: false };
  }
}

/** A registry of one tool whose executions come to `outcomes` in order; `runs` counts inside the tool. */
function toolOf(effect: ToolEffect, ...outcomes: readonly WorldOutcome[]) {
  const tool = defineTool({ name: 'tool', description: 'A tool.', parameters: z.object({}), effect });
  const counter = { runs: 0 };
  const registry = new ToolRegistry(
    [tool],
    () => outcomes[counter.runs++] ?? { status: 'crashed', kind: 'died', message: 'too often' },
  );
  return { counter, call: () => registry.call(issued('tool', {})) };
}

const busy: WorldOutcome = { status: 'error', message: 'busy', transient: true };
const wrong: WorldOutcome = { status: 'error', message: 'wrong', transient: false };
const ok: WorldOutcome = { status: 'ok', text: 'done' };

describe('dispatch and validation', () => {
  const registry = new ToolRegistry([calculator, lookup], calculating);

  it('a correct call is run and its result is the observation', () => {
    expect(registry.call(issued('calculator', { expression: '2 + 3 * 4' }))).toEqual({
      callId: 'call-1',
      tool: 'calculator',
      states: ['issued', 'running', 'ok'],
      attempts: 1,
      observation: '14',
    });
  });

  it('an unknown tool is an observation that names the nearest and all that there are', () => {
    const record = registry.call(issued('calcualtor', { expression: '1' }));
    expect(record).toMatchObject({ states: ['issued', 'error'], attempts: 0, error: 'unknown-tool' });
    expect(record.observation).toBe(
      'error: unknown tool "calcualtor" (did you mean "calculator"?). Tools: calculator, lookup.',
    );
  });

  it('all that is wrong with the arguments is listed at once, an unknown key with the nearest one', () => {
    const record = registry.call(issued('lookup', { keys: 'population_of_x', when: 1, year: 'now' }));
    expect(record).toMatchObject({ states: ['issued', 'error'], attempts: 0, error: 'invalid-arguments' });
    expect(record.observation).toContain('missing argument "key"');
    expect(record.observation).toContain('unknown argument "keys" (did you mean "key"?)');
    expect(record.observation).toContain('unknown argument "when" (there are: key, year)');
    expect(record.observation).toContain('year: Invalid input: expected number, received string, found "now"');
    expect(record.observation).toContain('Correct them and call it again');
  });

  it('a value outside an enumeration gets the nearest one', () => {
    const record = registry.call(issued('lookup', { key: 'population_of_z' }));
    expect(record.observation).toContain('found "population_of_z" (did you mean "population_of_x"?)');
  });

  it('a malformed call says why, and that nothing was run', () => {
    const record = registry.call(issued('', null, { malformed: 'expected an object' }));
    expect(record).toMatchObject({ attempts: 0, error: 'malformed' });
    expect(record.observation).toBe('error: the action could not be read, nothing was run: expected an object.');
  });

  it('a tool that throws is an observation that names the tool and what it said', () => {
    const record = registry.call(issued('calculator', { expression: '2 +' }));
    expect(record).toMatchObject({ states: ['issued', 'running', 'error'], attempts: 1, error: 'tool-error' });
    expect(record.observation).toMatch(/^error: calculator failed: .+\. Change the arguments or take another way\.$/);
  });

  it("refuses __import__('os') in an observation", () => {
    const record = registry.call(issued('calculator', { expression: "__import__('os')" }));
    expect(record.error).toBe('tool-error');
    expect(record.observation).toContain('expected');
  });

  it('refuses an own __proto__ key at any depth, before the schema sees it', () => {
    const open = defineTool({
      name: 'open',
      description: 'Takes anything.',
      parameters: z.object({ value: z.any() }),
      effect: 'read',
    });
    const anything = new ToolRegistry([open, lookup], () => ok);
    for (const args of ['{"value":{"a":[{"__proto__":{"x":1}}]}}', '{"value":1,"__proto__":{"x":1}}']) {
      const record = anything.call(issued('open', JSON.parse(args) as JsonObject));
      expect(record).toMatchObject({ error: 'invalid-arguments', attempts: 0 });
      expect(record.observation).toContain('__proto__');
    }
    expect(({} as { x?: number }).x).toBeUndefined();
  });

  it('arguments come to the same for a short text and a long one, also where a schema would change them', () => {
    const open = z.object({ value: z.any().transform((value: string[]) => value.sort()), note: z.string() });
    const tool = defineTool({ name: 'open', description: 'Anything.', parameters: open, effect: 'read' });
    const format = formatOf({ name: 'test', tools: [tool], format: 'json' });
    const registry = new ToolRegistry([tool], (_, argsJson) => ({ status: 'ok', text: argsJson }));
    const errors = ['', 'x'.repeat(100)].map((note) => {
      const text = `{"tool":"open","args":{"value":["b","a"],"note":"${note}"}}`;
      return registry.call(format.parse(text, 1).calls[0]!).observation;
    });
    expect(errors[0]).toContain('read only');
    expect(errors[1]).toBe(errors[0]);
  });

  it('what is remembered of arguments is of a format’s own alone: of others a member may change, frozen or not', () => {
    const open = defineTool({
      name: 'open',
      description: 'Any.',
      parameters: z.object({ list: z.any() }),
      effect: 'read',
    });
    const registry = new ToolRegistry([open], (_, argsJson) => ({ status: 'ok', text: argsJson }));
    const list = [1];
    const args = Object.freeze({ list });
    expect(registry.call(issued('open', args)).observation).toBe('{"list":[1]}');
    list.push(2);
    expect(registry.call(issued('open', args)).observation).toBe('{"list":[1,2]}');
  });

  it('never throws and never runs what is invalid, whatever the arguments, the nesting or the tool do', () => {
    const deep = JSON.parse(`${'['.repeat(50_000)}${']'.repeat(50_000)}`);
    let runs = 0;
    const hostile = new ToolRegistry([lookup], () => {
      runs++;
      throw new Error('from the world');
    });
    expect(hostile.call(issued('lookup', { key: deep }, { raw: 'deep' })).error).toBe('invalid-arguments');
    fc.assert(
      fc.property(fc.string(), fc.dictionary(fc.string(), fc.jsonValue()), (name, args) => {
        expect(hostile.call(issued(name, args as JsonObject)).attempts).toBe(0);
      }),
    );
    expect(runs).toBe(0);
    expect(hostile.call(issued('lookup', { key: 'population_of_x' }))).toMatchObject({
      states: ['issued', 'running', 'crashed'],
      error: 'crashed',
    });
  });

  it('gives the tool its arguments with defaults filled in, lone surrogates and all', () => {
    const seen: string[] = [];
    const tool = defineTool({
      name: 'say',
      description: 'Says it.',
      parameters: z.object({ text: z.string(), times: z.int().default(2) }),
      effect: 'read',
    });
    new ToolRegistry([tool], (_, argsJson) => {
      seen.push(argsJson);
      return ok;
    }).call(issued('say', { text: '你\ud800' }));
    expect(seen.map((json) => JSON.parse(json))).toEqual([{ text: '你\ud800', times: 2 }]);
  });
});

describe('retries', () => {
  it('a read that fails once for the moment is run twice, succeeds, and the failure is in the record alone', () => {
    const { counter, call } = toolOf('read', busy, ok);
    expect(call()).toEqual({
      callId: 'call-1',
      tool: 'tool',
      states: ['issued', 'running', 'error', 'running', 'ok'],
      attempts: 2,
      observation: 'done',
      retried: ['busy'],
    });
    expect(counter.runs).toBe(2);
  });

  it('a second failure is not retried', () => {
    const { counter, call } = toolOf('idempotent', busy, busy, ok);
    expect(call()).toMatchObject({ attempts: 2, error: 'tool-error', retried: ['busy'] });
    expect(counter.runs).toBe(2);
  });

  it.each([
    ['a write', 'write', busy],
    ['a failure that does not say it is transient', 'read', wrong],
    ['a timeout', 'read', { status: 'timeout' }],
    ['a crash', 'read', { status: 'crashed', kind: 'died', message: 'gone' }],
  ] as const)('%s is never retried', (_, effect, outcome) => {
    const { counter, call } = toolOf(effect, outcome, ok);
    expect(call()).toMatchObject({ attempts: 1, states: ['issued', 'running', outcome.status] });
    expect(counter.runs).toBe(1);
  });
});

describe('the permission boundary', () => {
  const asked = (permission: Permission) => {
    const counter = { runs: 0 };
    const tool = defineTool({
      name: 'remove',
      description: 'Deletes a file.',
      parameters: z.strictObject({ path: z.string().default('/') }),
      effect: 'write',
      permission,
    });
    const registry = new ToolRegistry([tool], () => {
      counter.runs++;
      return ok;
    });
    return { counter, call: (args: JsonObject) => registry.call(issued('remove', args)) };
  };

  it('sees valid arguments, defaults filled in, and the task; what it refuses is told and not run', () => {
    const { counter, call } = asked(({ path }, task) => {
      const { folder } = task.public as { folder: string };
      return (path as string).startsWith(folder) || `${path} is not below ${folder}`;
    });
    expect(call({ path: '/tmp/x' }).observation).toBe('done');
    expect(call({})).toEqual({
      callId: 'call-1',
      tool: 'remove',
      states: ['issued', 'error'],
      attempts: 0,
      observation: 'error: remove is not permitted here: / is not below /tmp/. Nothing was run, take another way.',
      error: 'not-permitted',
    });
    expect(call({ path: 1 }).error).toBe('invalid-arguments');
    expect(counter.runs).toBe(1);
  });

  it('where it cannot say it refuses, and it cannot change what is run', () => {
    for (const broken of [
      () => {
        throw new Error('no list');
      },
      () => undefined as unknown as true,
      () => 1 as unknown as true,
    ]) {
      const { counter, call } = asked(broken);
      expect(call({ path: '/tmp/x' })).toMatchObject({ error: 'not-permitted', attempts: 0 });
      expect(counter.runs).toBe(0);
    }
    const tool = defineTool({
      name: 'remove',
      description: 'Deletes a file.',
      parameters: z.strictObject({ path: z.string() }),
      effect: 'write',
      permission: (args) => {
        (args as Record<string, string>).path = '/etc';
        return true;
      },
    });
    const registry = new ToolRegistry([tool], (_, argsJson) => ({ status: 'ok', text: argsJson }));
    expect(registry.call(issued('remove', { path: '/tmp/x' })).observation).toBe('{"path":"/tmp/x"}');
  });
});

describe('the number of calls', () => {
  it('is bounded: those beyond are answered without being run, and refused calls do not count', () => {
    let runs = 0;
    const registry = new ToolRegistry([calculator, lookup], () => ({ status: 'ok', text: String(++runs) }), 2);
    const look = (key: string) => registry.call(issued('lookup', { key }));
    expect(look('nowhere').error).toBe('invalid-arguments');
    expect([look('population_of_x'), look('population_of_x')].map(({ observation }) => observation)).toEqual([
      '1',
      '2',
    ]);
    expect(look('population_of_x')).toMatchObject({
      error: 'too-many-calls',
      attempts: 0,
      states: ['issued', 'error'],
    });
    expect(look('population_of_x').observation).toContain('2 calls have been made');
    expect(runs).toBe(2);
  });
});

describe('timeouts and long results', () => {
  it('a timeout says that it may or may not have taken effect, and later calls are answered without being run', () => {
    const { counter, call } = toolOf('write', { status: 'timeout' }, ok);
    expect(call()).toMatchObject({ error: 'timeout' });
    expect(call()).toMatchObject({ states: ['issued', 'skipped'], attempts: 0, error: 'skipped' });
    expect(call().observation).toBe('not executed: the tools are gone since tool timed out; give the final answer.');
    expect(counter.runs).toBe(1);
    expect(toolOf('write', { status: 'timeout' }).call().observation).toContain('may or may not have taken effect');
  });

  it('a result is cut at the cap with a visible mark, never within a character', () => {
    const tool = defineTool({
      name: 'tool',
      description: 'A tool.',
      parameters: z.object({}),
      effect: 'read',
      maxOutput: 64,
    });
    for (const text of ['x'.repeat(1000), '😀'.repeat(500), `x${'😀'.repeat(500)}`]) {
      const { observation } = new ToolRegistry([tool], () => ({ status: 'ok', text })).call(issued('tool', {}));
      expect(observation.length).toBeLessThanOrEqual(64);
      expect(observation.isWellFormed()).toBe(true);
      expect(observation).toMatch(/… \[cut: 100[01] characters\]$/);
    }
  });
});

describe('arguments that nobody can change', () => {
  it('are checked once, those of another tool and those that can be changed each time', () => {
    let checks = 0;
    const strict = (name: string, max: number) =>
      defineTool({
        name,
        description: '',
        parameters: z.object({
          key: z.string().refine((key) => {
            checks++;
            return key.length <= max;
          }),
          more: z.int().default(max),
        }),
        effect: 'read',
      });
    const told: string[] = [];
    const tools = [strict('long', 9), strict('short', 2), strict('longest', 2000)];
    const registry = new ToolRegistry(tools, (tool, argsJson) => {
      told.push(`${tool} ${argsJson}`);
      return { status: 'ok', text: '' };
    });
    const format = formatOf({ name: 'test', tools, format: 'json' });
    const args = format.parse('{"tool":"long","args":{"key":"abc"}}', 1).calls[0]!.arguments;
    registry.call(issued('long', args));
    registry.call(issued('long', args));
    expect(checks).toBe(1);
    expect(registry.call(issued('short', args)).error).toBe('invalid-arguments');
    registry.call(issued('long', args));
    expect(checks).toBe(2);
    expect(told).toEqual(Array(3).fill('long {"key":"abc","more":9}'));
    const much = Object.freeze({ key: 'x'.repeat(1100) });
    comesAgain(much);
    for (let i = 0; i < 2; i++) registry.call(issued('longest', much));
    expect(checks).toBe(4);
    told.length = 3;
    const open = { key: 'a' };
    registry.call(issued('long', open));
    open.key = 'b';
    registry.call(issued('long', open));
    expect(told.slice(3)).toEqual(['long {"key":"a","more":9}', 'long {"key":"b","more":9}']);
  });
});
