/** @module How a failure is told: message and hint for a person, one object for a program, a stack for neither unless asked for. */
import { IsogymError } from '../records/errors.ts';

/** The first Ctrl-C, once the work has stopped. */
export const INTERRUPTED = 130;

/** Prints the error (on stdout as `{ error: { code, message, hint } }` with `json`) and sets the exit code. */
export function report(error: unknown, json: boolean): void {
  const { code, message, hint, exitCode } = describe(error);
  process.exitCode = exitCode;
  if (json) process.stdout.write(`${JSON.stringify({ error: { code, message, hint } })}\n`);
  const lines = [message.includes('\n') ? `error:\n${message}` : `error: ${message}`];
  if (hint !== null) lines.push(`hint: ${hint}`);
  if (process.env.ISOGYM_DEBUG === '1' && error instanceof Error) lines.push(error.stack ?? '');
  process.stderr.write(`${lines.join('\n')}\n`);
}

function describe(error: unknown): { code: string; message: string; hint: string | null; exitCode: number } {
  if (error instanceof IsogymError) {
    return { code: error.code, message: error.message, hint: error.hint ?? null, exitCode: error.exitCode };
  }
  if (error instanceof Error && error.name === 'AbortError') {
    return { code: 'INTERRUPTED', message: 'interrupted', hint: null, exitCode: INTERRUPTED };
  }
  const message = error instanceof Error ? error.message : String(error);
  return { code: 'INTERNAL', message, hint: 'ISOGYM_DEBUG=1 shows where it happened.', exitCode: 1 };
}
