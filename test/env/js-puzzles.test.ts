import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FAMILIES } from '../../src/env/js-puzzles/families.ts';
import jsPuzzles from '../../src/env/js-puzzles/index.ts';
import type { Case, PuzzlePublic } from '../../src/env/js-puzzles/tasks.ts';
import { RolloutPool } from '../../src/env/rollouts/pool.ts';
import { CODE_DEFAULTS, CodeSandbox } from '../../src/env/sandbox/code.ts';
import { actionGrammar } from '../../src/policy/grammar/index.ts';
import { Tokenizer } from '../../src/policy/tokenizer.ts';
import { generator } from '../../src/records/random.ts';
import { VerifierPool } from '../../src/verifiers/pool.ts';
import { FakeTokenPolicy, requestOf } from '../fixtures/rollouts.ts';

const URL_OF = new URL('../../src/env/js-puzzles/index.ts', import.meta.url).href;
const VERIFIER = new URL('../../src/verifiers/function-cases/index.ts', import.meta.url).href;
const tasks = Array.from({ length: 24 }, (_, index) => jsPuzzles.task('tasks', index, {}));
const requests = tasks.map((task) => requestOf({ id: task.id, prompt: task.prompt, public: task.public }));
let pool: RolloutPool;

beforeAll(async () => {
  pool = await RolloutPool.start({ environment: URL_OF, options: {}, workers: 2 });
});
afterAll(() => pool.close());

describe('the tasks', () => {
  it('are a function of seed and index, and all families come up', () => {
    expect(jsPuzzles.task('tasks', 3, {})).toEqual(tasks[3]);
    expect(jsPuzzles.task('other', 3, {})).not.toEqual(tasks[3]);
    const many = Array.from({ length: 200 }, (_, index) => jsPuzzles.task('tasks', index, {}).public as PuzzlePublic);
    expect(new Set(many.map(({ family }) => family)).size).toBe(FAMILIES.length);
  });

  it('show their examples and keep their hidden cases to themselves', () => {
    for (const { prompt, public: shown, held } of tasks) {
      const { examples } = shown as PuzzlePublic;
      for (const { input } of examples) expect(prompt).toContain(JSON.stringify(input));
      expect((held as { cases: Case[] }).cases).toHaveLength(8);
      expect(Object.keys(shown as object)).toEqual(['family', 'k', 'examples']);
    }
  });

  it.each(FAMILIES.map((family) => [family.name, family] as const))(
    '%s: the solution as it is written agrees with the one that made the cases',
    (_, family) => {
      const sandbox = new CodeSandbox(CODE_DEFAULTS);
      const run = sandbox.session();
      const random = generator(family.name);
      for (let k = 2; k <= 9; k++) {
        const inputs = Array.from({ length: 20 }, () => family.input(random));
        const expected = inputs.map((input) => ({ ok: true, json: JSON.stringify(family.solve(input as never, k)) }));
        expect(
          run(
            family.source(k),
            inputs.map((input) => JSON.stringify(input)),
          ),
        ).toEqual(expected);
      }
      sandbox.dispose();
    },
  );
});

describe('an episode', () => {
  it('the oracle solves every task, the constant answer none by right', async () => {
    const verifiers = await VerifierPool.start({ verifier: VERIFIER, workers: 1 });
    const scores = async (script: string) => {
      const episodes = await pool.run(requests, { kind: 'scripted', script });
      const scored = await verifiers.score(
        episodes.map((episode, i) => ({
          ...tasks[i]!,
          taskId: episode.taskId,
          steps: episode.steps,
          stop: episode.stop,
          final: episode.final,
        })),
      );
      return { episodes, scored };
    };
    const oracle = await scores('oracle');
    expect(oracle.scored.map(({ score }) => score)).toEqual(tasks.map(() => 1));
    for (const [i, { steps }] of oracle.episodes.entries()) {
      const [example] = (tasks[i]!.public as PuzzlePublic).examples;
      expect(steps[0]?.calls[0]?.observation).toBe(JSON.stringify(example?.output));
    }
    const constant = await scores('constant');
    expect(constant.scored.filter(({ success }) => success)).toEqual([]);
    await verifiers.close();
  });

  it('of a token policy, whose actions are anything that the grammar allows, gives the same bytes over 1 and 2 workers', async () => {
    const one = await RolloutPool.start({ environment: URL_OF, options: {}, workers: 1 });
    const some = requests.slice(0, 6);
    const bytes = async (engine: RolloutPool) =>
      JSON.stringify(await engine.run(some, { kind: 'tokens', policy: new FakeTokenPolicy(jsPuzzles) }));
    expect((await bytes(one)) === (await bytes(pool))).toBe(true);
    await one.close();
  });

  it('has a grammar', () => {
    expect(actionGrammar(jsPuzzles, new Tokenizer([])).allowed).toBeTypeOf('function');
  });
});

describe('where it runs', () => {
  it('is a process, since the policy wrote code; threads are refused', async () => {
    expect(jsPuzzles.isolation).toBe('process');
    const refusal = await RolloutPool.start({
      environment: URL_OF,
      options: {},
      workers: 1,
      isolation: 'thread',
    }).catch((error) => error);
    expect(refusal).toMatchObject({ code: 'ISOLATION', exitCode: 2 });
  });
});
