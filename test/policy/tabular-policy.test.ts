import { describe, expect, it } from 'vitest';
import type { TabularView } from '../../src/env/environment.ts';
import { formatOf } from '../../src/env/format.ts';
import type { PolicyContext, PolicyReply } from '../../src/policy/policy.ts';
import { tabularPolicy } from '../../src/policy/tabular-policy.ts';
import { generator, type Random } from '../../src/records/random.ts';

const format = formatOf({ name: 'test', tools: [], format: 'json' });
/** The state is the number in the prompt; action a answers "a". State s is token 3 + s. */
const view: TabularView = {
  states: 2,
  actions: ['zero', 'one', 'two'],
  observe: ({ task }) => Number(task.prompt),
  act: (action) => ({ final: String(action) }),
};
// Softmax of row 0 at temperature 1: 1/6, 2/6, 3/6. Row 1: two equal largest.
const table = Float32Array.of(Math.log(1), Math.log(2), Math.log(3), 0, 5, 5);
const taskOf = (id: string) => ({ id, prompt: id, public: null });
const acting = (o: { temperature?: number; greedy?: boolean } = {}) =>
  tabularPolicy(view, table, { version: 4, temperature: 1, greedy: false, ...o }, format, taskOf);
const ask = (state: number, random: Random, o = {}) =>
  acting(o).request({ episodeId: String(state), steps: [], random } as unknown as PolicyContext) as PolicyReply;

describe('sampling', () => {
  it.each([
    [0, 0],
    [0.16, 0],
    [0.17, 1],
    [0.49, 1],
    [0.51, 2],
    [0.999, 2],
  ])('a draw of %d in state 0 is action %d, by inverse CDF in their order, with its logprob', (uniform, action) => {
    const reply = ask(0, () => uniform);
    expect(reply).toMatchObject({ observed: [3], ids: [action], cutOff: false, action: { final: String(action) } });
    // The table holds float32 logits: their rounding is all that is between.
    expect(reply.logprobs?.[0]).toBeCloseTo(Math.log((action + 1) / 6), 6);
  });

  it('the temperature divides the logits: at one half the weights are squared', () => {
    expect(ask(0, () => 0.99, { temperature: 0.5 }).logprobs?.[0]).toBeCloseTo(Math.log(9 / 14), 6);
    expect(ask(0, () => 0.07, { temperature: 0.5 }).ids).toEqual([0]);
    expect(ask(0, () => 0.08, { temperature: 0.5 }).ids).toEqual([1]);
  });

  it('frequencies over 6000 draws lie within four standard errors of the softmax', () => {
    const random = generator('frequencies');
    const counts = [0, 0, 0];
    for (let i = 0; i < 6000; i++) counts[ask(0, random).ids[0]!]!++;
    for (const [action, count] of counts.entries()) {
      const p = (action + 1) / 6;
      expect(Math.abs(count / 6000 - p)).toBeLessThan(4 * Math.sqrt((p * (1 - p)) / 6000));
    }
  });
});

it('greedy takes the first largest, draws nothing and has no logprob', () => {
  const never = () => expect.unreachable();
  expect(ask(0, never, { greedy: true })).toMatchObject({ ids: [2], logprobs: null });
  expect(ask(1, never, { greedy: true })).toMatchObject({ observed: [4], ids: [1], logprobs: null });
});

it('its tokens are its own, under the version of its weights', () => {
  expect(acting()).toMatchObject({ name: 'tabular', version: 4, tokens: 'own' });
});

it('a table of another shape is refused', () => {
  expect(() =>
    tabularPolicy(view, new Float32Array(5), { version: 0, temperature: 1, greedy: false }, format, taskOf),
  ).toThrow('expected a table of 2 states × 3 actions = 6 numbers, found 5');
});
