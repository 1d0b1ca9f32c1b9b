import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ScriptView } from '../../src/env/environment.ts';
import { formatOf } from '../../src/env/format.ts';
import { RolloutRunner } from '../../src/env/rollouts/rollout-runner.ts';
import toyLookup from '../../src/env/toy-lookup/index.ts';
import { type LookupPublic, PLACES } from '../../src/env/toy-lookup/tasks.ts';
import { actionGrammar } from '../../src/policy/grammar/index.ts';
import { Tokenizer } from '../../src/policy/tokenizer.ts';
import { publicPart } from '../../src/records/task.ts';
import type { Episode } from '../../src/records/trajectory.ts';
import { requestsOf, TOY_LOOKUP } from '../fixtures/rollouts.ts';

const tokenizer = new Tokenizer(toyLookup.words);
const tabular = toyLookup.tabular!;
const task = (index: number, values = 99, seed = 'tasks') => toyLookup.task(seed, index, { values });
let runner: RolloutRunner;

beforeAll(async () => {
  runner = await RolloutRunner.create({ environment: TOY_LOOKUP, options: {} });
});
afterAll(() => runner.close());

describe('tasks', () => {
  it('a task is a function of seed and number, its two places differ and its facts lie in 1…values', () => {
    fc.assert(
      fc.property(fc.string(), fc.nat(10_000), fc.integer({ min: 2, max: 99 }), (seed, index, values) => {
        const made = task(index, values, seed);
        expect(task(index, values, seed)).toEqual(made);
        const { facts, x, y } = made.public as LookupPublic;
        expect(made).toMatchObject({ id: `toy-lookup-${index}`, held: { answer: String(facts[x]! + facts[y]!) } });
        expect(made.prompt).toBe(`What is the combined population of ${x} and ${y}?`);
        expect(x).not.toBe(y);
        expect(Object.keys(facts)).toEqual([...PLACES]);
        for (const fact of Object.values(facts))
          expect(Number.isInteger(fact) && fact >= 1 && fact <= values).toBe(true);
      }),
    );
  });

  it('facts and places are uniform, within four standard errors over 4000 tasks', () => {
    const publics = Array.from({ length: 4000 }, (_, i) => task(i).public as LookupPublic);
    const mean = publics.reduce((sum, { facts, x }) => sum + facts[x]!, 0) / 4000;
    expect(Math.abs(mean - 50)).toBeLessThan((4 * Math.sqrt((99 ** 2 - 1) / 12)) / Math.sqrt(4000));
    for (const place of PLACES) {
      const share = publics.filter(({ x, y }) => x === place || y === place).length / 4000;
      expect(Math.abs(share - 1 / 12)).toBeLessThan((4 * Math.sqrt((1 / 12) * (11 / 12))) / Math.sqrt(4000));
    }
  });

  it('the answer stands in no part of the task that leaves the trainer, beyond its being the sum', () => {
    const { held: _, ...rest } = task(3);
    expect(Object.keys(rest)).toEqual(['id', 'prompt', 'public']);
    expect(Object.keys(rest.public as LookupPublic)).toEqual(['facts', 'x', 'y', 'values']);
  });
});

describe('scripts', () => {
  const requests = requestsOf(toyLookup, 50);
  const answers = (episodes: readonly Episode[]) => episodes.map(({ final }) => final);
  const path = ({ steps }: Episode) => steps.map(({ action }) => action.calls[0]?.name ?? 'answer');

  it('oracle takes the full path and is right every time', async () => {
    const episodes = await runner.run(requests, { kind: 'scripted', script: 'oracle' });
    expect(answers(episodes)).toEqual(requests.map((_, i) => (task(i).held as { answer: string }).answer));
    for (const episode of episodes) expect(path(episode)).toEqual(['lookup', 'lookup', 'calculator', 'answer']);
  });

  it('skip adds 50 to the first fact, immediate answers 100', async () => {
    const skip = await runner.run(requests, { kind: 'scripted', script: 'skip' });
    for (const [i, episode] of skip.entries()) {
      const { facts, x } = task(i).public as LookupPublic;
      expect(path(episode)).toEqual(['lookup', 'calculator', 'answer']);
      expect(episode.final).toBe(String(facts[x]! + 50));
    }
    const immediate = await runner.run(requests, { kind: 'scripted', script: 'immediate' });
    expect(new Set(answers(immediate))).toEqual(new Set(['100']));
    expect(new Set(immediate.map((episode) => episode.steps.length))).toEqual(new Set([1]));
  });
});

describe('size', () => {
  it('has at most 512 token ids, bytes included, and no word that another one spoils', () => {
    expect(tokenizer.size).toBeLessThanOrEqual(512);
    for (const [i, word] of toyLookup.words.entries()) expect(tokenizer.encode(word)).toEqual([257 + i]);
  });

  it('every episode that the grammar allows has at most 40 tokens, and none of its calls fails', async () => {
    const episodes = await runner.run(requestsOf(toyLookup, 60, 8), { kind: 'uniform' });
    expect(episodes).toHaveLength(480);
    for (const { segments, steps, stop } of episodes) {
      expect(['final', 'max-steps']).toContain(stop);
      expect(segments[0]!.ids.length).toBeLessThanOrEqual(40);
      for (const record of steps.flatMap((step) => step.calls))
        expect(record.states).toEqual(['issued', 'running', 'ok']);
    }
    expect(episodes.filter(({ stop }) => stop === 'max-steps').length).toBeGreaterThan(0);
    expect(new Set(episodes.flatMap((e) => e.steps.map((step) => step.action.text.split(' ')[0])))).toEqual(
      new Set(['lookup', 'calculator', 'answer']),
    );
  });

  it('the longest episode there can be has 38: five subtractions below zero', async () => {
    const format = formatOf(toyLookup);
    const longest = format.action({ calls: [{ tool: 'calculator', arguments: { expression: '0 - 99' } }] });
    const action = tokenizer.encode(longest).length + 1;
    const prompt = tokenizer.encode(format.prompt(publicPart(task(0)))).length;
    expect([prompt, action, tokenizer.encode('-99').length]).toEqual([5, 5, 2]);
    expect(prompt + 5 * action + 4 * 2).toBe(38);
    expect(toyLookup.limits.maxSteps).toBe(5);
  });

  it('what the grammar writes, the format reads as a valid action and writes again to the letter', async () => {
    const format = formatOf(toyLookup);
    const episodes = await runner.run(requestsOf(toyLookup, 40), { kind: 'uniform' });
    for (const { action } of episodes.flatMap((episode) => episode.steps)) {
      const [call] = action.calls;
      const inWords =
        action.final === undefined
          ? { calls: [{ tool: call!.name, arguments: call!.arguments! }] }
          : { final: action.final };
      expect(format.action(inWords)).toBe(action.text);
      if (action.final !== undefined) expect(toyLookup.answer.safeParse(action.final).success).toBe(true);
    }
  });
});

describe('tabular view', () => {
  const view = ({ steps }: Pick<Episode, 'steps'>, upTo: number, index = 0): ScriptView => ({
    task: { id: 't', prompt: '', public: task(index).public },
    steps: steps.slice(0, upTo),
    random: () => 0,
  });
  const walked = async (...actions: readonly number[]) => {
    // A table whose row of every state reached prefers the action wanted next; states never repeat on these paths.
    const table = new Float32Array(24 * 4);
    for (let done = 0; ; done++) {
      const [episode] = await runner.run(requestsOf(toyLookup, 1), {
        kind: 'tabular',
        table,
        version: 1,
        temperature: 1,
        greedy: true,
      });
      const state = tabular.observe(view(episode!, done));
      if (done === actions.length) return episode!;
      for (let action = 0; action < 4; action++) table[state * 4 + action] = action === actions[done] ? 1 : 0;
    }
  };

  it('numbers the states of the full path by last tool, known facts and sum, and the answer is right', async () => {
    const episode = await walked(0, 1, 2, 3);
    expect(episode.segments[0]).toMatchObject({ ids: [4 + 0, 0, 4 + 12, 1, 4 + 14, 2, 4 + 23, 3], trainable: false });
    expect(episode.final).toBe((task(0).held as { answer: string }).answer);
  });

  it('calculates with 50 for what is unknown, which is no sum, and answers what was calculated last', async () => {
    const { facts, y } = task(0).public as LookupPublic;
    const guessed = await walked(1, 2, 3);
    expect(guessed.segments[0]?.ids).toEqual([4 + 0, 1, 4 + 10, 2, 4 + 18, 3]);
    expect(guessed.steps[1]?.action.text).toBe(`calculator 50 + ${facts[y]}`);
    expect(guessed.final).toBe(String(50 + facts[y]!));
    expect((await walked(2, 3)).final).toBe('100');
    expect((await walked(3)).segments[0]?.ids).toEqual([4 + 0, 3]);
    expect((await walked(3)).final).toBe('100');
  });

  it('guesses the middle and the likeliest sum of a smaller range', () => {
    const start = { ...view({ steps: [] }, 0), task: { id: 't', prompt: '', public: task(0, 7).public } };
    expect(tabular.act(2, start)).toEqual({ calls: [{ tool: 'calculator', arguments: { expression: '4 + 4' } }] });
    expect(tabular.act(3, start)).toEqual({ final: '8' });
  });
});

it('its grammar starts with the three ways to act, one token each', () => {
  const grammar = actionGrammar(toyLookup, tokenizer);
  expect([...grammar.allowed(grammar.start)].map((id) => tokenizer.decode([id]))).toEqual([
    'lookup ',
    'calculator ',
    'answer ',
  ]);
});
