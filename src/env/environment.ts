/** @module What an environment is: a declaration outside the isolate, a world inside it. Users write one with `defineEnvironment`. */
import type { z } from 'zod';
import { shown } from '../records/declaration.ts';
import { inputError } from '../records/errors.ts';
import type { Json } from '../records/json.ts';
import type { Random } from '../records/random.ts';
import type { PublicTask, Task } from '../records/task.ts';
import type { Step } from '../records/trajectory.ts';
import { environmentProblems } from './environment-problems.ts';
import { CODE_DEFAULTS, type CodeLimits, type RunCode } from './sandbox/code.ts';
import { heapLimitHolds } from './sandbox/isolated-vm.ts';
import type { Tool } from './tool.ts';

/** How thoroughly the world is renewed between episodes: called again in place (µs), in a fresh context (a third of a ms), in a fresh isolate (1–2 ms). */
export type ResetLevel = 'state' | 'context' | 'isolate';

/** Where worlds run: in the worker threads of this process, or in a process of its own for each worker, which can be killed and costs its own episodes only. */
export type Isolation = 'thread' | 'process';

/**
 * What the module behind `Environment.world` exports as default. It runs inside the isolate and is called once an episode.
 * `random` is the episode's own generator; `Math.random` inside the isolate draws from the same seed.
 * It may be async-free code only: no promise crosses the line.
 */
export type CreateWorld<Public extends Json = Json> = (start: {
  readonly public: Public;
  readonly random: () => number;
  /** Runs a function that the policy wrote, away from here; for environments that declare `code`. */
  readonly runCode: RunCode;
}) => World;

export interface World {
  /** One function for every declared tool, given validated arguments. A thrown error is an observation; `error.transient === true` allows one retry for read and idempotent tools. */
  readonly tools: Readonly<Record<string, (args: never) => string>>;
  /**
   * All that the world's tools read and change, as a JSON value; with `restore` it makes a fork as fast as a reset. Without
   * the two a fork runs the calls again, which is right for every world. The generator and the clock go along by themselves.
   */
  snapshot?(): Json;
  /** Makes a world that has just been created for the same task be as the one was that gave `state`. */
  restore?(state: never): void;
}

/** What a scripted or a tabular policy sees: the steps in words and the task's public part, since both are the environment's own. */
export interface ScriptView {
  readonly task: PublicTask;
  readonly steps: readonly Step[];
  readonly random: Random;
}
/** The action in words: tool calls (arguments as an object), or the final answer. */
export type ScriptedAction =
  | { readonly calls: readonly { readonly tool: string; readonly arguments: { readonly [key: string]: Json } }[] }
  | { readonly final: string };
export type Script = (view: ScriptView) => ScriptedAction;

/** A discretisation of the environment for tabular policies: `states` numbered states, named actions, and what each does in words. */
export interface TabularView {
  readonly states: number;
  readonly actions: readonly string[];
  /** The state number in [0, states) of what has been seen so far. */
  observe(view: ScriptView): number;
  act(action: number, view: ScriptView): ScriptedAction;
}

/** How actions and observations are written as text: see `src/env/format.ts`. */
export type FormatName = 'compact' | 'json';

export interface Environment<Options = unknown> {
  readonly name: string;
  /** Options that a config may set, with defaults. */
  readonly options: z.ZodType<Options>;
  /** The module that runs inside the isolate, e.g. `new URL('./world.ts', import.meta.url)`. Bundled with what it imports. */
  readonly world: URL;
  readonly tools: readonly Tool[];
  /** The final answer, a string schema: validation and grammar. */
  readonly answer: z.ZodType<string>;
  readonly format: FormatName;
  /** Strings that are one token each, on top of the 256 bytes. */
  readonly words: readonly string[];
  readonly limits: {
    readonly maxSteps: number;
    /** Tokens of one episode, prompt included. */
    readonly maxTokens: number;
    /** Tokens of one action. */
    readonly maxActionTokens: number;
    /** Tool calls that are executed in one episode; the others are answered with an error. */
    readonly maxCalls: number;
    /** Malformed actions in a row that end the episode. */
    readonly maxMalformed: number;
  };
  readonly reset: ResetLevel;
  /** Present where its worlds run code that the policy wrote: the bounds of that code. */
  readonly code?: CodeLimits;
  /** Where its worlds run. Default `thread`; `process` with `code`, and wherever the engine does not hold a heap to its limit (Node 24): see `heapLimitHolds`. */
  readonly isolation: Isolation;
  /** The isolate's heap limit in MiB. */
  readonly memoryMiB: number;
  /** Task number `index` ≥ 0 of the task set that `seed` fixes. Pure: same arguments, same task. */
  task(seed: string, index: number, options: Options): Task;
  /** Scripted policies by name; `oracle` solves every task. */
  readonly scripts: Readonly<Record<string, Script>>;
  readonly tabular?: TabularView;
}

export type EnvironmentDefinition<Options> = Omit<
  Environment<Options>,
  'format' | 'words' | 'limits' | 'reset' | 'code' | 'isolation' | 'memoryMiB' | 'scripts'
> & {
  readonly format?: FormatName;
  readonly words?: readonly string[];
  readonly limits?: Partial<Environment['limits']>;
  readonly reset?: ResetLevel;
  /** `{}` takes the defaults of `CODE_DEFAULTS`. */
  readonly code?: Partial<CodeLimits>;
  readonly isolation?: Isolation;
  readonly memoryMiB?: number;
  readonly scripts?: Readonly<Record<string, Script>>;
};

/**
 * Fills the defaults: JSON format, no words, 8 steps, 4096 tokens an episode, 512 an action, 100 calls, 3 malformed in a row, a fresh context, worker threads, 32 MiB.
 * @throws INVALID_ENVIRONMENT naming every problem at once.
 */
export function defineEnvironment<Options>(definition: EnvironmentDefinition<Options>): Environment<Options> {
  const { code, ...rest } = { ...definition };
  const environment: Environment<Options> = {
    format: 'json',
    words: [],
    reset: 'context',
    isolation: code === undefined && heapLimitHolds() ? 'thread' : 'process',
    memoryMiB: 32,
    scripts: {},
    ...rest,
    ...(code === undefined ? {} : { code: { ...CODE_DEFAULTS, ...code } }),
    limits: {
      maxSteps: 8,
      maxTokens: 4096,
      maxActionTokens: 512,
      maxCalls: 100,
      maxMalformed: 3,
      ...rest.limits,
    },
  };
  const problems = environmentProblems(environment);
  if (problems.length > 0) {
    throw inputError(
      'INVALID_ENVIRONMENT',
      `environment ${shown(environment.name)}: ${problems.join('; ')}`,
      'Correct them in the call of defineEnvironment.',
    );
  }
  return environment;
}
