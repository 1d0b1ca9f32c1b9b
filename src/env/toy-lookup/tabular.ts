/** @module toy-lookup for a tabular policy: 24 states, four actions. */
import type { ScriptView, TabularView } from '../index.ts';
import { add, lookUp } from './scripts.ts';
import { guessFact, guessSum, type LookupPublic } from './tasks.ts';

const TOOLS = ['none', 'lookup', 'calculator'];

/** What the steps so far have shown. */
interface Seen {
  /** The tool of the last step. */
  readonly last: string;
  /** The facts by place, as they were looked up. */
  readonly facts: ReadonlyMap<string, string>;
  readonly calculated: string | undefined;
  /** True where the last calculation had both facts: its result is the answer. */
  readonly sum: boolean;
}

function seenBy({ task, steps }: ScriptView): Seen {
  const { x, y } = task.public as LookupPublic;
  const facts = new Map<string, string>();
  let last = 'none';
  let calculated: string | undefined;
  let sum = false;
  for (const step of steps) {
    for (const [i, record] of step.calls.entries()) {
      last = record.tool;
      if (record.error !== undefined) continue;
      if (record.tool === 'lookup') facts.set(String(step.action.calls[i]?.arguments?.key), record.observation);
      if (record.tool === 'calculator') {
        calculated = record.observation;
        sum = facts.has(x) && facts.has(y);
      }
    }
  }
  return { last, facts, calculated, sum };
}

/**
 * State = ((last tool · 2 + x known) · 2 + y known) · 2 + summed, with the last tool none 0, lookup 1, calculator 2.
 * `calculate` adds the two facts, the middle of the range standing in for one that is unknown; `answer` gives the last
 * result, or the likeliest sum where there is none.
 */
export const tabular: TabularView = {
  states: 24,
  actions: ['lookup-x', 'lookup-y', 'calculate', 'answer'],
  observe(view) {
    const { x, y } = view.task.public as LookupPublic;
    const { last, facts, sum } = seenBy(view);
    return ((TOOLS.indexOf(last) * 2 + Number(facts.has(x))) * 2 + Number(facts.has(y))) * 2 + Number(sum);
  },
  act(action, view) {
    const task = view.task.public as LookupPublic;
    const { facts, calculated } = seenBy(view);
    const fact = (place: string) => facts.get(place) ?? guessFact(task);
    switch (action) {
      case 0:
        return lookUp(task.x);
      case 1:
        return lookUp(task.y);
      case 2:
        return add(fact(task.x), fact(task.y));
      default:
        return { final: calculated ?? String(guessSum(task)) };
    }
  },
};
