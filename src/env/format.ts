/** @module How prompts, actions and observations are written as text, and how a policy's text is read back. */
import { z } from 'zod';
import { KnownTexts } from '../policy/known-texts.ts';
import type { Action, ToolCall } from '../records/action.ts';
import { inputError, messageOf } from '../records/errors.ts';
import { frozen, type Json, type JsonObject, MAX_DEPTH } from '../records/json.ts';
import type { PublicTask } from '../records/task.ts';
import type { CallRecord } from '../records/trajectory.ts';
import { comesAgain } from './arguments.ts';
import type { Environment, ScriptedAction } from './environment.ts';
import { nestsDeeper, partsOf } from './json-source.ts';
import { type Tool, toolSchema } from './tool.ts';

/** No separators: a token that is no text ends an action. */
export interface Format {
  /** What the policy reads first. */
  prompt(task: PublicTask): string;
  /** @throws INVALID_ACTION where the format cannot express the action. */
  action(action: ScriptedAction): string;
  /**
   * Never throws: what is not understood is one call with `arguments: null`, `malformed` saying why and what to write
   * instead, and `raw` to the letter. Arguments are frozen, to their depth.
   * @param callIdFrom number of the first call id, `call-<n>`.
   */
  parse(text: string, callIdFrom: number): Action;
  /** What `parse` comes to, without making it: how many calls, and the final answer. */
  outline(text: string): { readonly calls: number; readonly final?: string | undefined };
  /** What the policy reads after its calls, which came to `calls`, in call order. */
  observation(calls: readonly CallRecord[]): string;
}

/** @throws INVALID_FORMAT where the environment's tools do not suit its format. */
export function formatOf(environment: Pick<Environment, 'name' | 'tools' | 'format'>): Format {
  const { read, ...writing } = environment.format === 'compact' ? compact(environment) : json(environment.tools);
  const reading = (text: string): Reading => {
    const made = read(text);
    for (const call of made.calls) frozen(call.arguments);
    return made;
  };
  const known = new KnownTexts(reading, (made) => {
    for (const call of made.calls) if (call.arguments !== null) comesAgain(call.arguments);
    return made;
  });
  return {
    ...writing,
    parse: (text, callIdFrom) => numbered(known.of(text), callIdFrom),
  };
}

type Unnumbered = Omit<ToolCall, 'id'>;

/** An action whose calls are not numbered yet: it follows from the text alone. */
interface Reading extends Omit<Action, 'calls'> {
  readonly calls: readonly Unnumbered[];
}

type Written = Omit<Format, 'parse'> & { read(text: string): Reading };

function numbered({ text, calls, final }: Reading, from: number): Action {
  if (final !== undefined) return { text, calls: [], final };
  const only = calls[0];
  if (only !== undefined && calls.length === 1) return { text, calls: [withId(only, from)] };
  return { text, calls: calls.map((call, i) => withId(call, from + i)) };
}

/** The first ids of all episodes: the same texts each time. */
const IDS = Array.from({ length: 128 }, (_, number) => `call-${number}`);

function withId({ name, arguments: args, raw, malformed }: Unnumbered, number: number): ToolCall {
  const id = IDS[number] ?? `call-${number}`;
  return malformed === undefined ? { id, name, arguments: args, raw } : { id, name, arguments: args, raw, malformed };
}

/** `lookup Oslo`, `answer 4600`: a name, one space, a value. A string is its own text, anything else JSON. */
function compact(environment: Pick<Environment, 'name' | 'tools'>): Written {
  const parameters = new Map(environment.tools.map((tool) => [tool.name, onlyParameter(environment.name, tool)]));

  function call(text: string): Unnumbered {
    const space = text.indexOf(' ');
    const name = space < 0 ? text : text.slice(0, space);
    const parameter = parameters.get(name);
    const raw = text.slice(space + 1);
    const malformed = (why: string): Unnumbered => ({ name, arguments: null, raw, malformed: why });
    if (parameter === undefined) {
      const names = [...parameters.keys(), 'answer'].map((known) => `"${known} <value>"`);
      const why = `expected ${names.join(' or ')}`;
      return name === 'answer' || text === '' ? { ...malformed(why), name: '' } : malformed(why);
    }
    if (space < 0) return malformed(`expected "${name} <${parameter.key}>", found no value`);
    if (parameter.isText) return { name, arguments: { [parameter.key]: raw }, raw };
    const expected = `expected "${name} <${parameter.key}>" with a JSON value`;
    let value: Json;
    try {
      value = JSON.parse(raw) as Json;
    } catch (error) {
      return malformed(`${expected} (${messageOf(error)})`);
    }
    // The arguments are a level themselves.
    if (nestsDeeper(raw, MAX_DEPTH - 1)) return malformed(`${expected} (${TOO_DEEP})`);
    return { name, arguments: { [parameter.key]: value }, raw };
  }

  return {
    prompt: (task) => task.prompt,
    action(action) {
      if ('final' in action) return `answer ${action.final}`;
      const only = action.calls[0];
      const keys = Object.keys(only?.arguments ?? {});
      const argument = keys[0];
      if (only === undefined || action.calls.length > 1 || argument === undefined || keys.length > 1) {
        throw invalidAction('one call with one argument (the compact format has no other)', action);
      }
      const parameter = parameters.get(only.tool);
      if (parameter !== undefined && parameter.key !== argument) {
        throw invalidAction(`the argument ${parameter.key} of ${only.tool}`, action);
      }
      const value = only.arguments[argument];
      // The same text object each time: what is known of it is found sooner.
      if (parameter !== undefined && typeof value === 'string') return parameter.calls.of(value);
      return `${only.tool} ${typeof value === 'string' ? value : JSON.stringify(value)}`;
    },
    read(text) {
      if (text.startsWith('answer ')) return { text, calls: [], final: text.slice('answer '.length) };
      return { text, calls: [call(text)] };
    },
    // Quicker than to ask what is known of the text.
    outline: (text) => (text.startsWith('answer ') ? { calls: 0, final: text.slice('answer '.length) } : ONE_CALL),
    observation: (calls) =>
      calls.length === 1 ? (calls[0] as CallRecord).observation : calls.map((record) => record.observation).join(''),
  };
}

const TOO_DEEP = `found arguments that nest more than ${MAX_DEPTH} levels deep`;

const ONE_CALL = { calls: 1, final: undefined } as const;

/** `{"tool":"lookup","args":{"key":"x"}}`, `{"final":"4600"}`, or an array of several calls. The prompt begins with the tools' schemas. */
function json(tools: readonly Tool[]): Written {
  const order = new Map(tools.map((tool) => [tool.name, Object.keys(tool.parameters.shape)]));

  const outlines = new KnownTexts(jsonOutline);
  const preamble = [
    'Tools, a JSON Schema each:',
    ...tools.map((tool) => JSON.stringify(toolSchema(tool))),
    `Write ${JSON_SHAPES}.`,
    '',
  ].join('\n');

  const write = (call: { readonly tool: string; readonly arguments: JsonObject }) => {
    const keys = order.get(call.tool) ?? [];
    const rank = (key: string) => (keys.includes(key) ? keys.indexOf(key) : keys.length);
    const args = Object.entries(call.arguments).sort(([a], [b]) => rank(a) - rank(b));
    return { tool: call.tool, args: Object.fromEntries(args) };
  };

  return {
    prompt: (task) => `${preamble}\n${task.prompt}\n`,
    action(action) {
      if ('final' in action) return JSON.stringify({ final: action.final });
      const calls = action.calls.map(write);
      return JSON.stringify(calls.length === 1 ? calls[0] : calls);
    },
    read(text) {
      let value: unknown;
      try {
        value = JSON.parse(text);
      } catch (error) {
        return { text, calls: [unread('', text, messageOf(error))] };
      }
      if (Array.isArray(value) && value.length > 0) {
        return { text, calls: partsOf(text).map((part, i) => jsonCall((value as unknown[])[i], part.source)) };
      }
      return isAnswer(value) ? { text, calls: [], final: value.final } : { text, calls: [jsonCall(value, text)] };
    },
    outline: (text) => outlines.of(text),
    observation(calls) {
      return calls
        .map((record) => (calls.length > 1 ? `${record.callId}: ${record.observation}\n` : `${record.observation}\n`))
        .join('');
    },
  };
}

/** Makes no calls, as `read` does: a text may hold a million of them, and be refused. */
function jsonOutline(text: string): ReturnType<Format['outline']> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return ONE_CALL;
  }
  if (Array.isArray(value) && value.length > 0) return { calls: value.length, final: undefined };
  return isAnswer(value) ? { calls: 0, final: value.final } : ONE_CALL;
}

function isAnswer(value: unknown): value is { readonly final: string } {
  return isObject(value) && typeof value.final === 'string' && Object.keys(value).length === 1;
}

const JSON_SHAPES = '{"tool": <name>, "args": {…}}, an array of such calls, or {"final": <text>} alone';

function jsonCall(value: unknown, source: string): Unnumbered {
  if (!isObject(value)) return unread('', source, 'found no object');
  const name = typeof value.tool === 'string' ? value.tool : '';
  const extra = Object.keys(value).find((key) => key !== 'tool' && key !== 'args');
  if (extra !== undefined) return unread(name, source, `found the key ${JSON.stringify(extra.slice(0, 60))}`);
  if (typeof value.tool !== 'string') return unread('', source, 'found no "tool" that is a string');
  if (!isObject(value.args)) return unread(name, source, 'found no "args" that is an object');
  // The last of equal keys, as JSON.parse has it.
  const raw = partsOf(source).findLast((part) => part.key === 'args')?.source ?? source;
  if (nestsDeeper(raw, MAX_DEPTH)) return unread(name, source, TOO_DEEP);
  return { name, arguments: value.args as JsonObject, raw };
}

function unread(name: string, raw: string, why: string): Unnumbered {
  return { name, arguments: null, raw, malformed: `expected ${JSON_SHAPES}; ${why}` };
}

function isObject(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

interface Parameter {
  readonly key: string;
  readonly isText: boolean;
  /** The texts of calls with a text as their value. */
  readonly calls: KnownTexts<string>;
}

function onlyParameter(environment: string, tool: Tool): Parameter {
  const [key, ...more] = Object.keys(tool.parameters.shape);
  if (key === undefined || more.length > 0) {
    throw inputError(
      'INVALID_FORMAT',
      `environment ${environment}: the compact format wants exactly one parameter for each tool, found ${key === undefined ? 'none' : [key, ...more].join(', ')} in ${tool.name}`,
      "Use format: 'json', or give the tool one parameter.",
    );
  }
  if (tool.name === 'answer') {
    throw inputError(
      'INVALID_FORMAT',
      `environment ${environment}: in the compact format "answer" is the final answer, found a tool of that name`,
      "Use format: 'json', or rename the tool.",
    );
  }
  const { properties } = z.toJSONSchema(tool.parameters, { unrepresentable: 'any' });
  const schema = properties?.[key];
  const isText = typeof schema === 'object' && schema.type === 'string';
  return { key, isText, calls: new KnownTexts((value): string => `${tool.name} ${value}`) };
}

function invalidAction(expected: string, found: ScriptedAction) {
  return inputError('INVALID_ACTION', `expected ${expected}, found ${JSON.stringify(found).slice(0, 200)}`);
}
