/** @module The registry: what stands between a policy's calls and the tools. It never throws; every failure is an observation that says what to do next. */
import type { ToolCall } from '../records/action.ts';
import { messageOf } from '../records/errors.ts';
import type { JsonObject } from '../records/json.ts';
import { nearest } from '../records/nearest.ts';
import type { PublicTask } from '../records/task.ts';
import type { CallRecord, CallState, SandboxFailure } from '../records/trajectory.ts';
import { quoted, suggestion, validated } from './arguments.ts';
import type { WorldOutcome, WorldSession } from './sandbox/world-host.ts';
import type { Tool } from './tool.ts';

/** One execution of a tool: the arguments of `WorldSession.call`. */
export interface Execution {
  readonly tool: string;
  readonly argsJson: string;
  readonly timeoutMs: number;
}

/** A call on its way: it yields each execution that it needs, is sent what that came to, and returns the record. */
export type Running = Generator<Execution, CallRecord, WorldOutcome>;

/** The course of nearly every call. */
const STRAIGHT: readonly CallState[] = Object.freeze(['issued', 'running', 'ok'] as const);

/** One episode's registry. */
export class ToolRegistry {
  readonly #tools: ReadonlyMap<string, Tool>;
  readonly #task: PublicTask;
  readonly #maxCalls: number;
  #calls = 0;
  /** The tool whose timeout took the world away, if one did. */
  #lostTo: string | undefined;
  #failure: SandboxFailure | undefined;

  /** @param maxCalls executions in the episode, retries not counted. */
  constructor(tools: readonly Tool[], task: PublicTask, maxCalls: number = Number.POSITIVE_INFINITY) {
    this.#task = task;
    this.#maxCalls = maxCalls;
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
  }

  /** Of what the world died, if it did. */
  get failure(): SandboxFailure | undefined {
    return this.#failure;
  }

  /**
   * Validates, asks for permission and for the execution, retries and caps. `error` of the record is `unknown-tool`, `malformed`, `invalid-arguments`,
   * `not-permitted`, `tool-error`, `skipped`, or a bound that was crossed: `timeout`, `too-deep`, `too-much-output`, `too-many-calls`; where
   * the world died, `out-of-memory` or `crashed`.
   *
   * What is retried follows from the effect and the terminal state: once, a `read` or `idempotent` tool whose failure says
   * that it is transient. Never a write, and never a timeout, whose silence says nothing. After a timeout the world is
   * gone, and calls are answered so without being run.
   */
  *call(call: ToolCall): Running {
    const ready = this.#ready(call);
    if ('states' in ready) return ready;
    const { tool, argsJson } = ready;
    const execution: Execution = { tool: tool.name, argsJson, timeoutMs: tool.timeoutMs };
    let outcome = yield execution;
    if (outcome.status === 'ok')
      return {
        callId: call.id,
        tool: tool.name,
        states: STRAIGHT,
        attempts: 1,
        observation: capped(outcome.text, tool.maxOutput),
      };
    const states: CallState[] = ['issued', 'running', outcome.status];
    const retried: string[] = [];
    if (outcome.status === 'error' && outcome.transient && tool.effect !== 'write') {
      retried.push(outcome.message);
      outcome = yield execution;
      states.push('running', outcome.status);
    }
    if (outcome.status === 'timeout') this.#lostTo = tool.name;
    if (outcome.status === 'crashed') this.#failure ??= outcome.kind;
    return {
      callId: call.id,
      tool: tool.name,
      states,
      attempts: 1 + retried.length,
      observation: capped(observationOf(tool, outcome), tool.maxOutput),
      ...(outcome.status === 'ok' ? {} : { error: errorOf(outcome) }),
      ...(retried.length === 0 ? {} : { retried }),
    };
  }

  /** The record of a call that was not run. */
  skip(call: ToolCall, why: string): CallRecord {
    return {
      callId: call.id,
      tool: call.name,
      states: ['issued', 'skipped'],
      attempts: 0,
      observation: `not executed: ${why}.`,
      error: 'skipped',
    };
  }

  /** What is to be executed, or the record of a call that is refused. */
  #ready(call: ToolCall): { readonly tool: Tool; readonly argsJson: string } | CallRecord {
    const tool = this.#tools.get(call.name);
    if (tool === undefined && call.name !== '') {
      const names = [...this.#tools.keys()];
      return refused(
        call,
        'unknown-tool',
        `unknown tool ${quoted(call.name)}${suggestion(nearest(call.name, names))}. Tools: ${names.join(', ')}`,
      );
    }
    if (tool === undefined || call.arguments === null) {
      return refused(call, 'malformed', `the action could not be read, nothing was run: ${call.malformed ?? ''}`);
    }
    const read = validated(tool, call.arguments);
    if ('problems' in read) {
      const text = `invalid arguments for ${tool.name}: ${read.problems.join('; ')}. Correct them and call it again`;
      return refused(call, 'invalid-arguments', text, tool.maxOutput);
    }
    if (this.#lostTo !== undefined) {
      return this.skip(call, `the tools are gone since ${this.#lostTo} timed out; give the final answer`);
    }
    const refusal = forbidden(tool, read.json, this.#task);
    if (refusal !== undefined) {
      const text = `${tool.name} is not permitted here: ${unstopped(refusal)}. Nothing was run, take another way`;
      return refused(call, 'not-permitted', text, tool.maxOutput);
    }
    if (this.#calls >= this.#maxCalls) {
      const text = `${this.#maxCalls} calls have been made, an episode may have no more: give the final answer`;
      return refused(call, 'too-many-calls', text);
    }
    this.#calls++;
    return { tool, argsJson: read.json };
  }
}

/** Why a call may not run. Where that cannot be said it may not run either. */
function forbidden({ permission }: Tool, argsJson: string, task: PublicTask): string | undefined {
  if (permission === undefined) return undefined;
  try {
    const answer: unknown = permission(JSON.parse(argsJson) as JsonObject, task);
    if (answer === true) return undefined;
    return typeof answer === 'string' ? answer : `its permission answered ${typeof answer}, neither true nor a reason`;
  } catch (error) {
    return `its permission failed (${messageOf(error)})`;
  }
}

/** Runs a call to its end, each execution as it asks for it. */
export function finishCall(running: Running, world: Pick<WorldSession, 'call'>): CallRecord {
  let next = running.next();
  while (next.done !== true) next = running.next(executed(next.value, world));
  return next.value;
}

/** Never throws, whatever the world does. */
export function executed({ tool, argsJson, timeoutMs }: Execution, world: Pick<WorldSession, 'call'>): WorldOutcome {
  try {
    return world.call(tool, argsJson, timeoutMs);
  } catch (error) {
    return { status: 'crashed', kind: 'died', message: messageOf(error) };
  }
}

function errorOf(outcome: Exclude<WorldOutcome, { status: 'ok' }>): string {
  switch (outcome.status) {
    case 'error':
      return outcome.bound ?? 'tool-error';
    case 'timeout':
      return 'timeout';
    case 'crashed':
      return outcome.kind === 'out-of-memory' ? outcome.kind : 'crashed';
  }
}

function observationOf(tool: Tool, outcome: WorldOutcome): string {
  switch (outcome.status) {
    case 'ok':
      return outcome.text;
    case 'error':
      return `error: ${tool.name} failed: ${unstopped(outcome.message)}. Change the arguments or take another way.`;
    case 'timeout':
      return `error: ${tool.name} gave no answer within ${tool.timeoutMs} ms; it may or may not have taken effect. The tools are gone: give the final answer.`;
    case 'crashed':
      return `error: ${tool.name} crashed: ${unstopped(outcome.message)}. What it changed is unknown.`;
  }
}

function refused(call: ToolCall, error: string, why: string, maxOutput = 2000): CallRecord {
  return {
    callId: call.id,
    tool: call.name,
    states: ['issued', 'error'],
    attempts: 0,
    observation: capped(`error: ${unstopped(why)}.`, maxOutput),
    error,
  };
}

/** The first `max` code units, the mark of the cut included; never the half of a surrogate pair. */
function capped(text: string, max: number): string {
  if (text.length <= max) return text;
  const mark = `… [cut: ${text.length} characters]`;
  let end = max - mark.length;
  if (/[\ud800-\udbff]/.test(text[end - 1] ?? '')) end--;
  return text.slice(0, end) + mark;
}

function unstopped(sentence: string): string {
  return sentence.replace(/\.$/, '');
}
