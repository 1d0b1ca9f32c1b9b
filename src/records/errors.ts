/** @module The one base error: what was expected, what was found, where, and what to do. */

export class IsogymError extends Error {
  override readonly name = 'IsogymError';
  /** Stable, for programs, e.g. `CONFIG_INVALID`. */
  readonly code: string;
  /** For people: something to do or to paste. */
  readonly hint: string | undefined;
  /** Process exit code when it reaches the command line: 1 failed, 2 wrong input. */
  readonly exitCode: 1 | 2;

  constructor(
    code: string,
    message: string,
    options: { readonly hint?: string; readonly cause?: unknown; readonly exitCode?: 1 | 2 } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.hint = options.hint;
    this.exitCode = options.exitCode ?? 1;
  }
}

/** A person's mistake: exit code 2. */
export function inputError(code: string, message: string, hint?: string): IsogymError {
  return new IsogymError(code, message, { exitCode: 2, ...(hint === undefined ? {} : { hint }) });
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
