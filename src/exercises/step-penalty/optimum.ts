/** @module The exact optimum of toy-lookup as a tabular policy meets it, by value iteration. */

/** What decides the rest of an episode: which facts are known, and how many of them the latest calculation used (null: none made). */
export interface LookupState {
  readonly knowsX: boolean;
  readonly knowsY: boolean;
  readonly calculated: 0 | 1 | 2 | null;
}

export const LOOKUP_ACTIONS = ['lookup-x', 'lookup-y', 'calculate', 'answer'] as const;
export type LookupAction = (typeof LOOKUP_ACTIONS)[number];

export const START: LookupState = { knowsX: false, knowsY: false, calculated: null };

/** The state that an action other than the answer leads to; all of them are deterministic. */
export function nextState(state: LookupState, action: Exclude<LookupAction, 'answer'>): LookupState {
  if (action === 'lookup-x') return { ...state, knowsX: true };
  if (action === 'lookup-y') return { ...state, knowsY: true };
  return { ...state, calculated: (Number(state.knowsX) + Number(state.knowsY)) as 0 | 1 | 2 };
}

/**
 * Probability that answering now is right, with both facts uniform on 1…values. Two known facts added: 1. Otherwise a guess, and
 * each of the policy's guesses (the middle for an unknown fact, the likeliest sum for both) is right for one value in `values`,
 * or for none where the middle is between two values and both facts are guessed by it.
 */
export function successProbability(state: LookupState, values: number): number {
  if (state.calculated === 2) return 1;
  if (state.calculated === 1) return 1 / values;
  return sumProbability(state.calculated === null ? values + 1 : 2 * middle(values), values);
}

/** The guess for an unknown fact. */
export function middle(values: number): number {
  return Math.ceil(values / 2);
}

/** P(x + y = sum) for x, y independent and uniform on 1…values. */
export function sumProbability(sum: number, values: number): number {
  const pairs = Math.min(sum - 1, values) - Math.max(sum - values, 1) + 1;
  return Math.max(0, pairs) / values ** 2;
}

export interface Optimum {
  /** Expected return of the best policy from the start. */
  readonly value: number;
  /** What it does from the start, while nothing is drawn: the tie goes to the earlier action in LOOKUP_ACTIONS. */
  readonly path: readonly LookupAction[];
}

/**
 * Value iteration, V_k(s) = max_a [ r(s, a) + V_{k−1}(s′) ] with V_0 = 0 (Sutton & Barto, 2nd ed., §4.4): the k-th sweep is exact for
 * k requests left, so `maxSteps` sweeps give the optimum of the episode. Every request costs the penalty, the answer included.
 */
export function optimum(penalty: number, values: number, maxSteps: number): Optimum {
  const states = allStates();
  const key = (s: LookupState) => JSON.stringify(s);
  let value = new Map(states.map((s) => [key(s), 0]));
  const best: Map<string, LookupAction>[] = [];
  for (let left = 1; left <= maxSteps; left++) {
    const swept = new Map<string, number>();
    const choice = new Map<string, LookupAction>();
    for (const state of states) {
      let top = Number.NEGATIVE_INFINITY;
      for (const action of LOOKUP_ACTIONS) {
        const gain =
          action === 'answer' ? successProbability(state, values) : (value.get(key(nextState(state, action))) ?? 0);
        if (gain - penalty > top) {
          top = gain - penalty;
          choice.set(key(state), action);
        }
      }
      swept.set(key(state), top);
    }
    value = swept;
    best.push(choice);
  }
  const path: LookupAction[] = [];
  let state = START;
  for (let left = maxSteps; left >= 1; left--) {
    const action = best[left - 1]?.get(key(state)) ?? 'answer';
    path.push(action);
    if (action === 'answer') break;
    state = nextState(state, action);
  }
  return { value: value.get(key(START)) ?? 0, path };
}

function allStates(): readonly LookupState[] {
  const flags = [false, true];
  const calculations = [null, 0, 1, 2] as const;
  return flags.flatMap((knowsX) =>
    flags.flatMap((knowsY) => calculations.map((calculated) => ({ knowsX, knowsY, calculated }))),
  );
}

/** A tabular policy: the probability of each of LOOKUP_ACTIONS in each of toy-lookup's tabular states, by the state's number. */
export type TabularProbabilities = readonly (readonly number[])[];

/** The number that toy-lookup's tabular view gives a state: ((last tool · 2 + x known) · 2 + y known) · 2 + summed. */
export function tabularNumber(last: LookupAction | null, { knowsX, knowsY, calculated }: LookupState): number {
  const tool = last === null ? 0 : last === 'calculate' ? 2 : 1;
  return ((tool * 2 + Number(knowsX)) * 2 + Number(knowsY)) * 2 + Number(calculated === 2);
}

interface Problem {
  readonly penalty: number;
  readonly values: number;
  readonly maxSteps: number;
}

/** Q_π of each action, exactly: what it costs, and what the policy itself, with all its chance, makes of the requests left after it. */
export function actionValues(
  policy: TabularProbabilities,
  { penalty, values, maxSteps }: Problem,
  state: LookupState = START,
  left: number = maxSteps,
): readonly number[] {
  return LOOKUP_ACTIONS.map((action) => {
    if (action === 'answer') return successProbability(state, values) - penalty;
    if (left === 1) return -penalty;
    const next = nextState(state, action);
    const after = actionValues(policy, { penalty, values, maxSteps }, next, left - 1);
    const probabilities = policy[tabularNumber(action, next)] ?? [];
    return after.reduce((sum, value, a) => sum + (probabilities[a] ?? 0) * value, -penalty);
  });
}

/**
 * Whether, all along its likeliest path, the policy's likeliest action is also the best one by Q_π: with what it would do next as it
 * is, no other action looks better, so its gradient leads no further (Sutton & Barto, 2nd ed., §13.2). The global optimum is one.
 */
export function isLocalOptimum(policy: TabularProbabilities, problem: Problem): boolean {
  let state = START;
  let last: LookupAction | null = null;
  for (let left = problem.maxSteps; left >= 1; left--) {
    const likeliest = indexOfLargest(policy[tabularNumber(last, state)] ?? []);
    const worth = actionValues(policy, problem, state, left);
    if (Math.max(...worth) > (worth[likeliest] ?? 0) + 1e-12) return false;
    const action = LOOKUP_ACTIONS[likeliest] ?? 'answer';
    if (action === 'answer') return true;
    state = nextState(state, action);
    last = action;
  }
  return true;
}

function indexOfLargest(values: readonly number[]): number {
  return values.indexOf(Math.max(...values));
}
