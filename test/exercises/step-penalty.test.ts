import { describe, expect, test } from 'vitest';
import environment from '../../src/env/toy-lookup/index.ts';
import { behaviourOf } from '../../src/exercises/step-penalty/behaviour.ts';
import {
  actionValues,
  isLocalOptimum,
  LOOKUP_ACTIONS,
  type LookupAction,
  nextState,
  optimum,
  START,
  successProbability,
  sumProbability,
  tabularNumber,
} from '../../src/exercises/step-penalty/optimum.ts';
import type { Step } from '../../src/records/trajectory.ts';

describe('the exact optimum', () => {
  test.each([
    [0.05, 0.8],
    [0.1, 0.6],
    [0.15, 0.4],
    [0.2, 0.2],
  ])('at penalty %f is the full path: 1 − 4 × penalty', (penalty, value) => {
    const best = optimum(penalty, 99, 5);
    expect(best.value).toBeCloseTo(value, 12);
    expect(best.path).toEqual(['lookup-x', 'lookup-y', 'calculate', 'answer']);
  });

  test('is the immediate answer once the full path costs more than it earns: 3 × penalty > 1 − 1/99', () => {
    expect(optimum(0.329, 99, 5).path).toHaveLength(4);
    expect(optimum(0.331, 99, 5).path).toEqual(['answer']);
  });

  test('skips lookups where a fact can be guessed: with two values at 0.2, 1/2 − 0.2 > 1 − 4 × 0.2', () => {
    expect(optimum(0.2, 2, 5)).toEqual({ value: 0.5 - 0.2, path: ['answer'] });
  });

  test('equals the best of all action sequences, tried one by one', () => {
    const sequences = (length: number): LookupAction[][] =>
      length === 0 ? [[]] : sequences(length - 1).flatMap((head) => LOOKUP_ACTIONS.map((a) => [...head, a]));
    for (const [penalty, values] of [
      [0.05, 99],
      [0.2, 3],
      [0.35, 99],
      [0.1, 2],
    ] as const) {
      const returns = sequences(5).map((sequence) => {
        let state = START;
        for (const [i, action] of sequence.entries()) {
          if (action === 'answer') return successProbability(state, values) - penalty * (i + 1);
          state = nextState(state, action);
        }
        return -penalty * 5;
      });
      expect(optimum(penalty, values, 5).value).toBeCloseTo(Math.max(...returns), 12);
    }
  });

  test('sums of two uniform facts have the probabilities of two dice', () => {
    expect(sumProbability(7, 6)).toBeCloseTo(6 / 36, 12);
    expect(sumProbability(2, 6)).toBeCloseTo(1 / 36, 12);
    expect(sumProbability(13, 6)).toBe(0);
    const all = Array.from({ length: 200 }, (_, sum) => sumProbability(sum, 99));
    expect(all.reduce((a, b) => a + b, 0)).toBeCloseTo(1, 12);
  });

  test('the probabilities are those of the environment: every pair of facts, every sequence of up to three tabular actions', () => {
    const values = 4;
    const view = environment.tabular!;
    const sequences: LookupAction[][] = [
      [],
      ...LOOKUP_ACTIONS.slice(0, 3).flatMap((a) => [
        [a],
        ...LOOKUP_ACTIONS.slice(0, 3).flatMap((b) => [[a, b], ...LOOKUP_ACTIONS.slice(0, 3).map((c) => [a, b, c])]),
      ]),
    ];
    for (const sequence of sequences) {
      let right = 0;
      for (let x = 1; x <= values; x++) {
        for (let y = 1; y <= values; y++) {
          const task = { id: 't', prompt: '', public: { facts: { Rome: x, Bern: y }, x: 'Rome', y: 'Bern', values } };
          const steps: Step[] = [];
          for (const [index, name] of sequence.entries()) {
            const did = view.act(LOOKUP_ACTIONS.indexOf(name), { task, steps, random: () => 0 });
            const [call] = 'calls' in did ? did.calls : [];
            const [value] = Object.values(call!.arguments) as string[];
            const [a, b] = value!.split(' + ').map(Number);
            const observation = call!.tool === 'lookup' ? String({ Rome: x, Bern: y }[value!]) : String(a! + b!);
            steps.push({
              index,
              action: { text: '', calls: [{ id: 'c', name: call!.tool, arguments: { ...call!.arguments }, raw: '' }] },
              calls: [{ callId: 'c', tool: call!.tool, states: ['issued', 'running', 'ok'], attempts: 1, observation }],
              tokens: { segment: 0, start: 0, end: 0 },
              hash: '',
            });
          }
          const answer = view.act(3, { task, steps, random: () => 0 });
          if ('final' in answer && answer.final === String(x + y)) right++;
        }
      }
      const state = sequence.reduce((s, a) => nextState(s, a as Exclude<LookupAction, 'answer'>), START);
      expect(right / values ** 2, sequence.join(' ')).toBeCloseTo(successProbability(state, values), 12);
    }
  });
});

describe('a tabular policy', () => {
  const problem = { penalty: 0.2, values: 99, maxSteps: 5 };
  const always = (action: LookupAction) =>
    Array.from({ length: 24 }, () => LOOKUP_ACTIONS.map((a) => Number(a === action)));
  const doing = (policy: number[][], number: number, action: LookupAction) =>
    policy.with(
      number,
      LOOKUP_ACTIONS.map((a) => Number(a === action)),
    );
  const full = [
    [tabularNumber('lookup-x', { ...START, knowsX: true }), 'lookup-y'],
    [tabularNumber('lookup-y', { ...START, knowsX: true, knowsY: true }), 'calculate'],
    [tabularNumber(null, START), 'lookup-x'],
  ].reduce((policy, [number, action]) => doing(policy, number as number, action as LookupAction), always('answer'));

  test('values each action by what it would do next: by hand', () => {
    const [x, y, calculate, answer] = actionValues(full, problem);
    expect(x).toBeCloseTo(1 - 4 * 0.2, 12);
    // After y this policy answers, knowing one fact and having calculated nothing.
    expect(y).toBeCloseTo(1 / 99 - 2 * 0.2, 12);
    expect(calculate).toBeCloseTo(1 / 99 - 2 * 0.2, 12);
    expect(answer).toBeCloseTo(1 / 99 - 0.2, 12);
    const half = full.with(tabularNumber('lookup-x', { ...START, knowsX: true }), [0, 0.5, 0, 0.5]);
    expect(actionValues(half, problem)[0]).toBeCloseTo(0.5 * 0.2 + 0.5 * (1 / 99 - 0.4), 12);
    expect(actionValues(always('lookup-x'), problem)[0]).toBeCloseTo(-1, 12);
  });

  test('is in a local optimum where it answers at once and would answer after every lookup too; not where it would go on', () => {
    expect(isLocalOptimum(full, problem)).toBe(true);
    expect(isLocalOptimum(always('answer'), problem)).toBe(true);
    expect(isLocalOptimum(doing(full, 0, 'answer'), problem)).toBe(false);
    // Going on so rarely that a lookup looks worse than the answer.
    const rarely = doing(full, 0, 'answer').with(
      tabularNumber('lookup-x', { ...START, knowsX: true }),
      [0, 0.2, 0, 0.8],
    );
    expect(isLocalOptimum(rarely, problem)).toBe(true);
  });

  test('numbers its states as the environment’s tabular view does', () => {
    const task = { id: 't', prompt: '', public: { facts: { Rome: 1, Bern: 2 }, x: 'Rome', y: 'Bern', values: 9 } };
    expect(environment.tabular!.observe({ task, steps: [], random: () => 0 })).toBe(tabularNumber(null, START));
    expect(environment.tabular!.states).toBe(24);
    expect(environment.tabular!.actions).toEqual(LOOKUP_ACTIONS);
  });
});

describe('what an episode did', () => {
  const did = (...tools: (readonly [string, string])[]): readonly Step[] =>
    tools.map(([tool, value], index) => ({
      index,
      action: { text: '', calls: [{ id: 'c', name: tool, arguments: { key: value }, raw: value }] },
      calls: [{ callId: 'c', tool, states: ['issued', 'running', 'ok'], attempts: 1, observation: '1' }],
      tokens: { segment: 0, start: 0, end: 0 },
      hash: '',
    }));
  test.each([
    ['full path', did(['lookup', 'a'], ['lookup', 'b'], ['calculator', '1 + 1']), '2'],
    ['lookup skipped', did(['lookup', 'a'], ['lookup', 'a'], ['calculator', '1 + 50']), '51'],
    ['immediate answer', [], '100'],
    ['other', did(['lookup', 'a'], ['calculator', '1 + 50'], ['lookup', 'b']), '51'],
    ['other', did(['lookup', 'a'], ['lookup', 'b']), null],
  ] as const)('is named %s', (name, steps, final) => {
    expect(behaviourOf({ steps, final })).toBe(name);
  });
});
