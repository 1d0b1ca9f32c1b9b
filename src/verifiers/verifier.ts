/** @module How an episode is judged: held out and read-only. A verifier's code runs in an isolate of its own, after the episode has ended. */
import type { ResetLevel } from '../env/environment.ts';
import { CODE_DEFAULTS, type CodeLimits, declaredCode, type RunCode } from '../env/sandbox/code.ts';
import { MIN_MEMORY_MIB } from '../env/sandbox/realm-pool.ts';
import { Declared, MAX_TIMEOUT_MS, shown } from '../records/declaration.ts';
import { inputError } from '../records/errors.ts';
import type { Json } from '../records/json.ts';
import type { Episode, Step } from '../records/trajectory.ts';

/** What a verifier is shown: a frozen copy of what happened. */
export interface VerifierInput {
  readonly taskId: string;
  readonly prompt: string;
  readonly public: Json;
  readonly held: Json;
  readonly steps: readonly Step[];
  readonly stop: Episode['stop'];
  readonly final: string | null;
}

/** What the module behind `Verifier.source` exports as default; it runs inside the verifier's isolate. */
export type Verify = (
  input: VerifierInput,
  /** Runs a function that the policy wrote, away from here; for verifiers that declare `code`. */
  means: { readonly runCode: RunCode },
) => { readonly score: number; readonly reasons?: readonly string[] };

export interface Verifier {
  readonly name: string;
  /** e.g. `new URL('./verify.ts', import.meta.url)`. Bundled with what it imports. */
  readonly source: URL;
  /** Scores outside this closed range are "unscored". */
  readonly range: readonly [number, number];
  /** A terminated episode with a score of at least this counts as a success. */
  readonly success: number;
  readonly timeoutMs: number;
  readonly memoryMiB: number;
  /** Present where it runs code that the policy wrote: the bounds of that code. Such a verifier has a process of its own. */
  readonly code?: CodeLimits;
  /** How thoroughly its world is renewed between scores. `state` is for code that keeps nothing from one call to the next. */
  readonly reset: ResetLevel;
  /** What of an episode it is shown, beside `taskId` and `stop`; all of it where this is absent. What is left out is not even read. */
  readonly reads?: readonly (keyof VerifierInput)[];
  /** A final answer that is wrong for every task; one episode ending with it is scored in every batch, and a verifier that passes it stops the run. */
  readonly canary: string;
}

const KEYS = ['name', 'source', 'range', 'success', 'timeoutMs', 'memoryMiB', 'code', 'reset', 'reads', 'canary'];
const INPUTS = ['taskId', 'prompt', 'public', 'held', 'steps', 'stop', 'final'];

/**
 * Fills the defaults: range [0, 1], success at 1, 1000 ms, 32 MiB, a fresh context for each score, a canary that no task expects.
 * @throws INVALID_VERIFIER naming every problem at once.
 */
export function defineVerifier(
  definition: Pick<Verifier, 'name' | 'source'> &
    Partial<Omit<Verifier, 'code'>> & { readonly code?: Partial<CodeLimits> },
): Verifier {
  const { code, ...rest } = { ...definition };
  const verifier: Verifier = {
    range: [0, 1],
    success: 1,
    timeoutMs: 1000,
    memoryMiB: 32,
    reset: 'context',
    canary: '\u0000canary\u0000',
    ...rest,
    ...(code === undefined ? {} : { code: { ...CODE_DEFAULTS, ...code } }),
  };
  const problems = verifierProblems(verifier);
  if (problems.length > 0) {
    throw inputError(
      'INVALID_VERIFIER',
      `verifier ${shown(verifier.name)}: ${problems.join('; ')}`,
      'Correct them in the call of defineVerifier.',
    );
  }
  return verifier;
}

/** Of a verifier with its defaults filled in: `path: expected …, found …` each; none where it can be run. */
export function verifierProblems(verifier: unknown): readonly string[] {
  const declared = new Declared(verifier);
  declared.only(KEYS);
  declared.expect('name', 'a name, e.g. "right-answer"', (name) => typeof name === 'string' && name !== '');
  declared.moduleUrl('source', './verify.ts');
  const [low, high] = bounds(declared.get('range'));
  if (low < high) {
    declared.expect('success', `a score in the range [${low}, ${high}]`, (success) => {
      return typeof success === 'number' && success >= low && success <= high;
    });
  } else {
    declared.add(
      'range',
      `expected [low, high], two finite numbers with low < high, found ${inBrackets(declared.get('range'))}`,
    );
    declared.expect('success', 'a finite number', Number.isFinite);
  }
  declared.wholeNumber('timeoutMs', 1, MAX_TIMEOUT_MS);
  declared.wholeNumber('memoryMiB', MIN_MEMORY_MIB);
  declared.oneOf('reset', ['state', 'context', 'isolate']);
  declared.expect('reads', `a list of ${INPUTS.join(', ')}`, (reads) => {
    return reads === undefined || (Array.isArray(reads) && reads.every((one) => INPUTS.includes(one)));
  });
  declared.expect('canary', 'a text', (canary) => typeof canary === 'string');
  if (declared.get('code') !== undefined) declared.part(declaredCode(declared.get('code')));
  return declared.problems;
}

/** Two NaN where it is no pair of finite numbers. */
function bounds(range: unknown): readonly [number, number] {
  if (Array.isArray(range) && range.length === 2 && range.every(Number.isFinite)) return range as [number, number];
  return [Number.NaN, Number.NaN];
}

function inBrackets(range: unknown): string {
  return Array.isArray(range) ? `[${range.slice(0, 5).map(shown).join(', ')}]` : shown(range);
}
