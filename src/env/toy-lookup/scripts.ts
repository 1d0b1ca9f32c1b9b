/** @module The scripted policies of toy-lookup: the full path, a path that skips a lookup and guesses, and an immediate guess. */
import type { Script, ScriptedAction, ScriptView } from '../index.ts';
import { guessFact, guessSum, type LookupPublic, PLACES } from './tasks.ts';

export function lookUp(key: string): ScriptedAction {
  return { calls: [{ tool: 'lookup', arguments: { key } }] };
}

export function add(a: number | string, b: number | string): ScriptedAction {
  return { calls: [{ tool: 'calculator', arguments: { expression: `${a} + ${b}` } }] };
}

/** What was answered to the only call of a step. */
function answerTo({ steps }: ScriptView, step: number): string {
  return steps[step]?.calls[0]?.observation ?? '';
}

/** Looks up both facts, adds them, answers: always right. */
const oracle: Script = (view) => {
  const { x, y } = view.task.public as LookupPublic;
  switch (view.steps.length) {
    case 0:
      return lookUp(x);
    case 1:
      return lookUp(y);
    case 2:
      return add(answerTo(view, 0), answerTo(view, 1));
    default:
      return { final: answerTo(view, 2) };
  }
};

/** Looks up one fact and guesses the other. */
const skip: Script = (view) => {
  const task = view.task.public as LookupPublic;
  if (view.steps.length === 0) return lookUp(task.x);
  if (view.steps.length === 1) return add(answerTo(view, 0), guessFact(task));
  return { final: answerTo(view, 1) };
};

/** Guesses the sum at once. */
const immediate: Script = (view) => ({ final: String(guessSum(view.task.public as LookupPublic)) });

/** Looks up both facts and seven more places that nobody asked about, adds in its head, answers: right, in ten steps. A load for benchmarks. */
const survey: Script = (view) => {
  const { x, y } = view.task.public as LookupPublic;
  const at = view.steps.length;
  if (at === 0) return lookUp(x);
  if (at === 1) return lookUp(y);
  if (at < 9) return lookUp(PLACES[at - 2] as string);
  return { final: String(Number(answerTo(view, 0)) + Number(answerTo(view, 1))) };
};

export const scripts = { oracle, skip, immediate, survey };
