import { expect, it } from 'vitest';
import { Rounds } from '../../src/env/rounds.ts';
import type { TokenPolicy, TokenReply, TokenRequest } from '../../src/policy/token-policy.ts';

const request = (episodeId: string): TokenRequest => ({ episodeId, newIds: [1], maxTokens: 5, seed: episodeId });
const reply = (id: number): TokenReply => ({ ids: [id], logprobs: [-1], cutOff: false });

/** Answers request i of a batch with i; keeps what happened, in order. */
function recording(): TokenPolicy & { log: string[] } {
  const log: string[] = [];
  return {
    name: 'recording',
    version: 1,
    log,
    async generate(requests) {
      log.push(`generate ${requests.map((r) => r.episodeId).join(' ')}`);
      return requests.map((_, i) => reply(i));
    },
    release: (ids) => void log.push(`release ${ids.join(' ')}`),
  };
}

it('a round begins when all who live wait, and holds them in the order of the requests', async () => {
  const policy = recording();
  const rounds = new Rounds(policy, ['a', 'b', 'c']);
  const c = rounds.ask(request('c'));
  const a = rounds.ask(request('a'));
  expect(policy.log).toEqual([]);
  const b = rounds.ask(request('b'));
  expect(policy.log).toEqual(['generate a b c']);
  expect(await Promise.all([a, b, c])).toEqual([reply(0), reply(1), reply(2)]);
});

it('who has ended is not waited for, and is released as the next round begins, the last as all have ended', async () => {
  const policy = recording();
  const rounds = new Rounds(policy, ['a', 'b', 'c']);
  rounds.end('c');
  const both = [rounds.ask(request('b'))];
  rounds.end('a');
  await Promise.all(both);
  expect(policy.log).toEqual(['release a c', 'generate b']);
  rounds.end('b');
  rounds.end('b');
  await Promise.resolve();
  expect(policy.log).toEqual(['release a c', 'generate b', 'release b']);
});

it('an episode whose worker dies while it waits leaves the round to the others', async () => {
  const policy = recording();
  const rounds = new Rounds(policy, ['a', 'b']);
  void rounds.ask(request('a'));
  rounds.end('a');
  expect(await rounds.ask(request('b'))).toEqual(reply(0));
  expect(policy.log).toEqual(['release a', 'generate b']);
});

it('one that dies while tokens are made does not hold up the next round', async () => {
  const policy = recording();
  const rounds = new Rounds(policy, ['a', 'b']);
  const asked = [rounds.ask(request('a')), rounds.ask(request('b'))];
  rounds.end('a');
  await Promise.all(asked);
  expect(await rounds.ask(request('b'))).toEqual(reply(0));
  expect(policy.log).toEqual(['generate a b', 'release a', 'generate b']);
});

it('a policy that fails, or answers too few, fails the round and not the next one', async () => {
  const policy = recording();
  const good = policy.generate;
  const rounds = new Rounds(policy, ['a', 'b']);
  for (const [generate, words] of [
    [() => Promise.reject(new Error('out of memory')), 'out of memory'],
    [async () => [reply(0)], 'expected 2 replies of the policy, found 1'],
  ] as const) {
    policy.generate = generate;
    const asked = await Promise.allSettled([rounds.ask(request('a')), rounds.ask(request('b'))]);
    expect(asked).toMatchObject([{ reason: { message: words } }, { reason: { message: words } }]);
  }
  policy.generate = good;
  expect(await Promise.all([rounds.ask(request('a')), rounds.ask(request('b'))])).toEqual([reply(0), reply(1)]);
});

it('an id given twice is refused: its episodes could not be told apart', () => {
  expect(() => new Rounds(recording(), ['a', 'b', 'a'])).toThrow(
    'expected a different id for each request, found a twice',
  );
});
