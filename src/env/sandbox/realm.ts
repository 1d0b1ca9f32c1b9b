/** @module A realm: a guarded context with a program in it, and what running something in it comes to. Synchronous; one thread. */
import type ivm from 'isolated-vm';
import { messageOf } from '../../records/errors.ts';
import type { SandboxFailure } from '../../records/trajectory.ts';
import type { RunCode } from './code.ts';
import { RUN_CODE } from './guard.ts';
import { isolatedVm } from './isolated-vm.ts';
import { pieces } from './pieces.ts';
import { enter, leave } from './progress.ts';
import { Switchboard } from './switchboard.ts';

/** What an operation inside came to. After `timeout` or `crashed` the realm answers `crashed` for ever. */
export type WorldOutcome =
  | { readonly status: 'ok'; readonly text: string }
  | {
      readonly status: 'error';
      readonly message: string;
      readonly transient: boolean;
      /** A bound that was crossed: the call stack, or the length of what may leave. */
      readonly bound?: 'too-deep' | 'too-much-output';
      /** Code of a policy that was not run. */
      readonly refused?: true;
      /** There was no memory for a buffer: with nobody else in its isolate there may be. */
      readonly shortOfMemory?: true;
    }
  | { readonly status: 'timeout' }
  | { readonly status: 'crashed'; readonly kind: SandboxFailure; readonly message: string };

/** `open` (public JSON, seed) and `call` (tool, arguments JSON) of a world, `snapshot` and `restore` (what `snapshot` gave) of a world; `score` (JSON array of inputs) of a verifier, `code` (source, inputs JSON) of a policy. */
export type Operation = 'snapshot' | 'restore' | 'score' | 'code' | OperationTogether;

/** Those that may be run for many realms at once. `close` forgets the world. */
export type OperationTogether = 'open' | 'call' | 'close';

/** The only way into a realm: see `guard.ts`. What stands in `more` is the rest of `a`. */
export type Door = (operation: Operation, a: string, b: string, limit: number, ...more: string[]) => string;

/** One isolate with the script of its contexts, and how many of them stand in it. */
export interface Cell {
  readonly isolate: ivm.Isolate;
  readonly script: ivm.Script;
  /** Made for the first operations that are run together. */
  switchboard: Switchboard | undefined;
  realms: number;
  /** True where no new context may begin in it: something in it ran late, or it is dead. */
  retired: boolean;
}

/** A context in which the guard has run; the program has not, until the first operation. */
export class Realm {
  readonly cell: Cell;
  readonly #context: ivm.Context;
  readonly #run: ivm.Reference<Door>;
  /** What the program may run a policy's code with; whoever opens a session in the realm sets it. */
  runCode: RunCode | undefined;
  #dead: Extract<WorldOutcome, { status: 'crashed' }> | undefined;
  /** On the switchboard of its isolate. */
  #line: number | undefined;

  constructor(cell: Cell, runsCode: boolean) {
    this.cell = cell;
    this.#context = cell.isolate.createContextSync();
    if (runsCode) {
      const callback = (source: string, inputs: string) => this.#callback(source, inputs);
      this.#context.global.setSync(RUN_CODE, new (isolatedVm().Callback)(callback));
    }
    this.#run = cell.script.runSync(this.#context, { reference: true });
  }

  get dead(): boolean {
    return this.#dead !== undefined;
  }

  /** @param limit of `code`: the longest result. */
  run(operation: Operation, a: string, b: string, timeoutMs: number, limit = 0): WorldOutcome {
    if (this.#dead !== undefined) return this.#dead;
    let answer: string;
    const outer = enter(timeoutMs);
    try {
      const [head, ...more] = pieces(a);
      answer = this.#run.applySync(undefined, [operation, head, b, limit, ...more], { timeout: timeoutMs });
    } catch (error) {
      // The door catches all that foreign code throws: this is isolated-vm's own error.
      this.cell.retired = true;
      if (!this.cell.isolate.isDisposed && messageOf(error).startsWith('Script execution timed out')) {
        this.#dead = died(`An earlier operation took longer than its ${timeoutMs} ms.`);
        return { status: 'timeout' };
      }
      const message = messageOf(error);
      this.#dead = /memory limit|out of memory/i.test(message)
        ? { status: 'crashed', kind: 'out-of-memory', message }
        : died(message);
      return this.#dead;
    } finally {
      leave(outer);
    }
    return outcomeOf(answer);
  }

  /** Its place on the switchboard, which is made with the first. */
  line(): number {
    this.cell.switchboard ??= new Switchboard(this.cell.isolate);
    this.#line ??= this.cell.switchboard.connect(this.#run);
    return this.#line;
  }

  /** Nothing more is run in it: what it holds is not known. */
  lose(): void {
    this.#dead ??= died('What it holds is not known.');
  }

  /** Strings in, a string out, and nothing thrown: what is thrown here would be an object of this side. */
  #callback(source: string, inputs: string): string {
    try {
      const outcomes = this.runCode?.(source, JSON.parse(inputs) as string[]);
      return JSON.stringify(outcomes ?? []);
    } catch {
      return '[]';
    }
  }

  release(): void {
    this.#dead ??= died('The session is closed.');
    if (this.cell.isolate.isDisposed) return;
    if (this.#line !== undefined) this.cell.switchboard?.disconnect(this.#line);
    this.#run.release();
    this.#context.release();
  }
}

/** What a door's answer says: its first letter is its kind. */
export function outcomeOf(answer: string): WorldOutcome {
  const text = answer.slice(1);
  switch (answer[0]) {
    case 'k':
      return { status: 'ok', text };
    case 'd':
      return { status: 'error', message: text, transient: false, bound: 'too-deep' };
    case 'o':
      return { status: 'error', message: text, transient: false, bound: 'too-much-output' };
    case 'm':
      return { status: 'error', message: text, transient: false, shortOfMemory: true };
    case 'r':
      return { status: 'error', message: text, transient: false, refused: true };
    default:
      return { status: 'error', message: text, transient: answer[0] === 't' };
  }
}

export function died(message: string): Extract<WorldOutcome, { status: 'crashed' }> {
  return { status: 'crashed', kind: 'died', message };
}
