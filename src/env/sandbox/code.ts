/**
 * @module Code that a policy wrote: run in a context of its own, which never held anything else and is thrown away after, in an
 * isolate that holds no world. Strings go in and come out. Whoever may use it (a world, a verifier) is handed a `RunCode`.
 */
import { Declared, MAX_TIMEOUT_MS } from '../../records/declaration.ts';
import { messageOf } from '../../records/errors.ts';
import type { Realm, WorldOutcome } from './realm.ts';
import { MIN_MEMORY_MIB, RealmPool } from './realm-pool.ts';

/** Bounds of one run of a policy's code, and how many an episode (or one score) may have. */
export interface CodeLimits {
  /** Time for the code and all its inputs. Default 250. */
  readonly timeoutMs: number;
  /** The isolate's heap limit. Default 32. */
  readonly memoryMiB: number;
  /** Length of one result as JSON, in UTF-16 code units. Default 10 000. */
  readonly maxOutput: number;
  /** Runs in one episode, or for one score. Default 64. */
  readonly maxRuns: number;
}

export const CODE_DEFAULTS: CodeLimits = { timeoutMs: 250, memoryMiB: 32, maxOutput: 10_000, maxRuns: 64 };

/** What is wrong with the `code` of a declaration. */
export function declaredCode(code: unknown): Declared {
  const declared = new Declared(code, 'code');
  declared.only(Object.keys(CODE_DEFAULTS));
  declared.wholeNumber('timeoutMs', 1, MAX_TIMEOUT_MS);
  declared.wholeNumber('memoryMiB', MIN_MEMORY_MIB);
  for (const key of ['maxOutput', 'maxRuns']) declared.wholeNumber(key, 1);
  return declared;
}

/**
 * Why a run gave no result. `refused`: the code was not run, since it is not one function. `error`: it threw, or returned
 * what JSON cannot express. `crashed`: its isolate died of something else than memory. The others are bounds.
 */
export type CodeFailure =
  | 'refused'
  | 'error'
  | 'timeout'
  | 'out-of-memory'
  | 'too-deep'
  | 'too-much-output'
  | 'too-many-calls'
  | 'crashed';

/** What the function gave for one input: its result as JSON, or why there is none. */
export type CodeOutcome =
  | { readonly ok: true; readonly json: string }
  | { readonly ok: false; readonly failure: CodeFailure; readonly message: string };

/**
 * As worlds and verifiers see it: `source` is an expression whose value is a function of one argument, `inputs` are JSON texts.
 * One outcome an input, all in one context, in order. A bound that ends the run (time, memory) is the outcome of all of them.
 */
export type RunCode = (source: string, inputs: readonly string[]) => readonly CodeOutcome[];

export class CodeSandbox {
  readonly #limits: CodeLimits;
  readonly #realms: RealmPool;

  /** @throws ISOLATED_VM_UNSAFE | ISOLATED_VM_MISSING */
  constructor(limits: CodeLimits) {
    this.#limits = limits;
    const { memoryMiB } = limits;
    this.#realms = new RealmPool({ reset: 'context', memoryMiB, tidy: true });
  }

  /** For one episode or one score: the runs are counted. Never throws. */
  session(): RunCode {
    let runs = 0;
    const { maxRuns } = this.#limits;
    return (source, inputs) => {
      runs++;
      if (runs <= maxRuns) return this.#run(source, inputs);
      const message = `The code has been run ${maxRuns} times, it may be run no more.`;
      return inputs.map(() => ({ ok: false, failure: 'too-many-calls', message }));
    };
  }

  dispose(): void {
    this.#realms.dispose();
  }

  #run(source: string, inputs: readonly string[]): readonly CodeOutcome[] {
    const { timeoutMs, maxOutput } = this.#limits;
    let realm: Realm;
    try {
      realm = this.#realms.take();
    } catch (error) {
      return inputs.map(() => ({ ok: false, failure: 'crashed', message: messageOf(error) }));
    }
    const outcome = realm.run('code', source, JSON.stringify(inputs), timeoutMs, maxOutput);
    this.#realms.give(realm, false);
    if (outcome.status === 'ok') return (JSON.parse(outcome.text) as string[]).map(readOutcome);
    const failed = this.#failed(outcome);
    return inputs.map(() => failed);
  }

  /** The run as a whole. No words of V8's: they differ from version to version. */
  #failed(outcome: Exclude<WorldOutcome, { status: 'ok' }>): CodeOutcome {
    const { timeoutMs, memoryMiB } = this.#limits;
    switch (outcome.status) {
      case 'timeout':
        return failure('timeout', `The code ran longer than ${timeoutMs} ms.`);
      case 'crashed':
        return outcome.kind === 'out-of-memory'
          ? failure('out-of-memory', `The code used more than ${memoryMiB} MiB.`)
          : failure('crashed', 'The isolate of the code died.');
      case 'error':
        return failure(outcome.bound ?? (outcome.refused === true ? 'refused' : 'error'), outcome.message);
    }
  }
}

const FAILURES: Readonly<Record<string, CodeFailure>> = { e: 'error', t: 'error', d: 'too-deep', o: 'too-much-output' };

function readOutcome(text: string): CodeOutcome {
  const [kind = 'e'] = text;
  if (kind === 'k') return { ok: true, json: text.slice(1) };
  // What V8 throws there can be caught inside, so that the run goes on with the next input.
  if (kind === 'm') return failure('out-of-memory', 'There was no memory for a buffer.');
  return failure(FAILURES[kind] ?? 'error', text.slice(1));
}

function failure(failure: CodeFailure, message: string): CodeOutcome {
  return { ok: false, failure, message };
}
