/** @module How a failure is told: message and hint for a person, one object for a program, a stack for neither unless asked for. */
import { IsogymError } from '../records/errors.ts';
import { visible } from './episode-text.ts';
import { asTyped } from './invocation.ts';
import { printJson } from './output.ts';

/** The first Ctrl-C, once the work has stopped. */
export const INTERRUPTED = 130;

/** A longer line is cut for people: what was typed may be anything. */
const MAX_LINE = 2000;

interface Failure {
  readonly code: string;
  readonly message: string;
  readonly hint: string | null;
  readonly exitCode: number;
}

/** Prints the error (on stdout as `{ error: { code, message, hint } }` with `json`) and sets the exit code. */
export function report(error: unknown, json: boolean): void {
  const { code, message, exitCode, ...told } = describe(error);
  const hint = told.hint === null ? null : asTyped(told.hint);
  process.exitCode = exitCode;
  if (json) printJson({ error: { code, message, hint } });
  const lines = [message.includes('\n') ? `error:\n${shown(message)}` : `error: ${shown(message)}`];
  if (hint !== null) lines.push(`hint: ${shown(hint)}`);
  if (process.env.ISOGYM_DEBUG === '1' && error instanceof Error) lines.push(error.stack ?? '');
  process.stderr.write(`${lines.join('\n')}\n`);
}

/** What a message quotes may hold anything: no character of it moves the cursor or colours the terminal. */
function shown(text: string): string {
  const short = (line: string) => (line.length > MAX_LINE ? `${line.slice(0, MAX_LINE)}…` : line);
  return text
    .split('\n')
    .map((line) => visible(short(line)))
    .join('\n');
}

function describe(error: unknown): Failure {
  if (error instanceof IsogymError) {
    return { code: error.code, message: error.message, hint: error.hint ?? null, exitCode: error.exitCode };
  }
  if (error instanceof Error && error.name === 'AbortError') {
    return { code: 'INTERRUPTED', message: 'interrupted', hint: null, exitCode: INTERRUPTED };
  }
  const message = error instanceof Error ? error.message : String(error);
  const { code, syscall } = (error ?? {}) as NodeJS.ErrnoException;
  if (typeof code === 'string' && typeof syscall === 'string') return systemFailure(code, syscall, message);
  if (isOutOfMemory(error, message)) {
    const hint =
      'Make smaller: the model (policy), one pass (batch.microTokens), or what one iteration collects (batch.groups, group.size).';
    return {
      code: 'OUT_OF_MEMORY',
      message: `expected enough memory, found too little: ${message}`,
      hint,
      exitCode: 1,
    };
  }
  return { code: 'INTERNAL', message, hint: 'ISOGYM_DEBUG=1 shows where it happened.', exitCode: 1 };
}

/** V8 refuses a buffer with a RangeError; tfjs's WebAssembly aborts where its memory cannot grow, and says no more than that. */
function isOutOfMemory(error: unknown, message: string): boolean {
  if (error instanceof Error && error.name === 'RuntimeError') return message.startsWith('Aborted(');
  return error instanceof RangeError && /allocation failed|invalid.*(length|size)/i.test(message);
}

/** What the operating system refused; its message names the path. */
function systemFailure(code: string, syscall: string, message: string): Failure {
  if (syscall === 'uv_cwd') {
    const gone = 'expected a working folder, found that it has been removed';
    return { code: 'SYSTEM', message: gone, hint: 'cd to a folder that exists.', exitCode: 1 };
  }
  return {
    code: 'SYSTEM',
    message,
    hint: SYSTEM_HINTS[code] ?? 'ISOGYM_DEBUG=1 shows where it happened.',
    exitCode: 1,
  };
}

const SYSTEM_HINTS: Readonly<Record<string, string>> = {
  EACCES: 'Change who may read and write there, or name another folder (runs.dir=…).',
  EPERM: 'Change who may read and write there, or name another folder (runs.dir=…).',
  EROFS: 'Name a folder that can be written to (runs.dir=…).',
  ENOSPC: 'Free some space there, or name another folder (runs.dir=…).',
  EDQUOT: 'Free some space there, or name another folder (runs.dir=…).',
  EMFILE: 'Allow more open files: ulimit -n 1024.',
};
