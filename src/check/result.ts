/** @module What a check came to. */

/** `skipped`: there was nothing to look at, e.g. no oracle; `seen` says what is missing. */
export interface CheckResult {
  readonly name: string;
  readonly status: 'passed' | 'failed' | 'skipped';
  /** What was seen, in one line: counts, or the first thing that is wrong, with its task, tool and values. */
  readonly seen: string;
  /** Of a failed one: what to do. */
  readonly hint?: string;
}

export function passed(name: string, seen: string): CheckResult {
  return { name, status: 'passed', seen };
}

export function failed(name: string, seen: string, hint: string): CheckResult {
  return { name, status: 'failed', seen, hint };
}

export function skipped(name: string, seen: string): CheckResult {
  return { name, status: 'skipped', seen };
}

/** Text of any length, for one line. */
export function short(text: string): string {
  return text.length > 120 ? `${text.slice(0, 117)}…` : text;
}
