/** @module The registry: what stands between a policy's calls and the tools. It never throws; every failure is an observation that says what to do next. */
import type { ToolCall } from '../records/action.ts';
import { messageOf } from '../records/errors.ts';
import { nearest } from '../records/nearest.ts';
import type { CallRecord, CallState } from '../records/trajectory.ts';
import { quoted, suggestion, validated } from './arguments.ts';
import type { WorldOutcome } from './sandbox/world-host.ts';
import type { Tool } from './tool.ts';

/** Runs a tool once: `WorldSession.call`. */
export type Execute = (tool: string, argsJson: string, timeoutMs: number) => WorldOutcome;

/** One episode's registry. */
export class ToolRegistry {
  readonly #tools: ReadonlyMap<string, Tool>;
  readonly #execute: Execute;
  readonly #maxCalls: number;
  #calls = 0;
  /** The tool whose timeout took the world away, if one did. */
  #lostTo: string | undefined;

  /** @param maxCalls executions in the episode, retries not counted. */
  constructor(tools: readonly Tool[], execute: Execute, maxCalls: number = Number.POSITIVE_INFINITY) {
    this.#maxCalls = maxCalls;
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
    this.#execute = execute;
  }

  /**
   * Validates, runs, retries and caps. `error` of the record is `unknown-tool`, `malformed`, `invalid-arguments`,
   * `tool-error`, `skipped`, or a bound that was crossed: `timeout`, `too-deep`, `too-much-output`, `too-many-calls`; where
   * the world died, `out-of-memory` or `crashed`.
   *
   * What is retried follows from the effect and the terminal state: once, a `read` or `idempotent` tool whose failure says
   * that it is transient. Never a write, and never a timeout, whose silence says nothing. After a timeout the world is
   * gone, and calls are answered so without being run.
   */
  call(call: ToolCall): CallRecord {
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
    if (this.#calls >= this.#maxCalls) {
      const text = `${this.#maxCalls} calls have been made, an episode may have no more: give the final answer`;
      return refused(call, 'too-many-calls', text);
    }
    this.#calls++;
    return this.#run(call, tool, read.json);
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

  #run(call: ToolCall, tool: Tool, argsJson: string): CallRecord {
    const states: CallState[] = ['issued', 'running'];
    const retried: string[] = [];
    let outcome = this.#attempt(tool, argsJson);
    states.push(outcome.status);
    if (outcome.status === 'error' && outcome.transient && tool.effect !== 'write') {
      retried.push(outcome.message);
      outcome = this.#attempt(tool, argsJson);
      states.push('running', outcome.status);
    }
    if (outcome.status === 'timeout') this.#lostTo = tool.name;
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

  #attempt(tool: Tool, argsJson: string): WorldOutcome {
    try {
      return this.#execute(tool.name, argsJson, tool.timeoutMs);
    } catch (error) {
      return { status: 'crashed', kind: 'died', message: messageOf(error) };
    }
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
