import { expect, test } from 'vitest';
import { RolloutPool } from '../../../src/env/rollouts/pool.ts';
import { RolloutRunner } from '../../../src/env/rollouts/rollout-runner.ts';
import type { TokenPolicy, TokenReply, TokenRequest } from '../../../src/policy/token-policy.ts';
import { Tokenizer } from '../../../src/policy/tokenizer.ts';
import type { Episode } from '../../../src/records/trajectory.ts';
import { atOnce } from '../../fixtures/rollouts.ts';

const GLUTTON = new URL('../../fixtures/glutton/index.ts', import.meta.url).href;
const tokenizer = new Tokenizer([]);

/** Counts three times and answers; the gluttons eat in their second step. */
function policyOf(gluttons: readonly string[], how: string): TokenPolicy {
  const steps = new Map<string, number>();
  return {
    name: 'counting',
    version: 0,
    tick: atOnce((requests) =>
      requests.map(({ episodeId }) => {
        const step = steps.get(episodeId) ?? 0;
        steps.set(episodeId, step + 1);
        const text =
          step === 1 && gluttons.includes(episodeId) ? `${how} it` : step < 3 ? `count ${episodeId}` : 'answer done';
        const ids = [...tokenizer.encode(text), tokenizer.end];
        return { ids, logprobs: ids.map(() => -1), cutOff: false };
      }),
    ),
    release: () => undefined,
  };
}

async function episodesWith(workers: number, gluttons: readonly string[], how = 'eat'): Promise<readonly Episode[]> {
  const pool = await RolloutPool.start({ environment: GLUTTON, options: {}, workers });
  try {
    const requests = Array.from({ length: 12 }, (_, i) => ({
      id: `n-${i}`,
      group: `g-${i}`,
      task: { id: `glutton-${i}`, prompt: 'Go.', public: {} },
      iteration: 0,
      rollout: 0,
      seed: `seed-${i}`,
    }));
    return await pool.run(requests, { kind: 'tokens', policy: policyOf(gluttons, how) });
  } finally {
    await pool.close();
  }
}

test('cases 19 and 24: a world that uses up its memory costs its own episode alone, whatever the number of workers', async () => {
  const peace = await episodesWith(1, []);
  expect(peace.map(({ stop }) => stop)).toEqual(peace.map(() => 'final'));
  for (const workers of [1, 2, 4]) {
    const episodes = await episodesWith(workers, ['n-5', 'n-8']);
    for (const [i, episode] of episodes.entries()) {
      if (i === 5 || i === 8) expect(episode).toMatchObject({ stop: 'sandbox-failure', failure: 'out-of-memory' });
      else expect(episode).toEqual(peace[i]);
    }
  }
});

test('so does one whose growth the engine does not stop: where it does not, worlds have a process of their own', async () => {
  const peace = await episodesWith(1, []);
  const episodes = await episodesWith(2, ['n-5'], 'gorge');
  for (const [i, episode] of episodes.entries()) {
    if (i === 5) expect(episode).toMatchObject({ stop: 'sandbox-failure', failure: 'out-of-memory' });
    else expect(episode).toEqual(peace[i]);
  }
});

test('a neighbour that asks for something else in its second world has failed: what it was told was for another context', async () => {
  const runner = await RolloutRunner.create({ environment: GLUTTON, options: {} });
  const turns = new Map<string, number>();
  const requests = ['n-0', 'n-1', 'n-2'].map((id, i) => ({
    id,
    group: id,
    task: {
      id: `glutton-${i}`,
      // As where a tool ran into its time limit the first time alone.
      get prompt() {
        return id === 'n-2' && turns.get('n-0') === 2 ? 'Went.' : 'Go.';
      },
      public: {},
    },
    iteration: 0,
    rollout: 0,
    seed: id,
  }));
  const asking = {
    name: 'counting',
    version: 0,
    async ask({ episodeId }: TokenRequest): Promise<TokenReply> {
      const turn = turns.get(episodeId) ?? 0;
      turns.set(episodeId, turn + 1);
      const text = turn === 1 && episodeId === 'n-0' ? 'eat it' : turn < 3 ? `count ${episodeId}` : 'answer done';
      const ids = [...tokenizer.encode(text), tokenizer.end];
      return { ids, logprobs: ids.map(() => -1), cutOff: false };
    },
  };
  const episodes = await Promise.all(requests.map((request) => runner.converse(request, asking)));
  await runner.close();
  expect(episodes.map(({ stop }) => stop)).toEqual(['sandbox-failure', 'final', 'sandbox-failure']);
  expect(episodes[2]).toMatchObject({ failure: 'died', stopDetail: expect.stringContaining('before action 1') });
});
