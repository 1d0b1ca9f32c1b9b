import { expect, it } from 'vitest';
import { HostTalk } from '../../../src/env/rollouts/host-talk.ts';
import { failedEpisode } from '../../../src/env/transcript.ts';
import { requestOf } from '../../fixtures/rollouts.ts';

const request = requestOf({ id: 't', prompt: 'Try.', public: {} });
const other = requestOf({ id: 't', prompt: 'Try.', public: {} }, 1);
const { id } = request;
const ask = { ask: { episodeId: id, newIds: [1, 2], maxTokens: 5, seed: 's' } };
const ended = { ended: failedEpisode(request, 'fake', 'policy-failure', 'why') };
const reply = { episodeId: id, reply: { ids: [1], logprobs: [-1], cutOff: false } };

const talk = () => new HostTalk('fake', { vocabulary: 9, maxSteps: 3, maxTokens: 9 });

it('a host says that it hears, asks one question at a time, and ends each episode', () => {
  const host = talk();
  expect(host.heard([{ hears: true }])).toEqual([{ hears: true }]);
  host.told([{ begin: request }]);
  expect(host.heard([ask])).toEqual([ask]);
  host.told([reply]);
  // Once it has asked, it may have nothing to add.
  const more = { ask: { ...ask.ask, newIds: [] } };
  expect(host.heard([more])).toEqual([more]);
  host.told([{ episodeId: id, error: 'the policy failed' }]);
  expect(host.heard([ended])).toEqual([ended]);
});

it('a question more than an episode may have steps is refused', () => {
  const host = talk();
  host.told([{ begin: request }]);
  for (let step = 0; step < 3; step++) {
    host.heard([ask]);
    host.told([reply]);
  }
  expect(() => host.heard([ask])).toThrow('at most 3 questions of an episode');
});

it.each([
  ['no list of messages', { hears: true }],
  ['that it hears, twice', [{ hears: true }, { hears: true }]],
  ['a second question before the first is answered', [ask, ask]],
  ['a question of an episode that was not told to begin', [{ ask: { ...ask.ask, episodeId: other.id } }]],
  ['a question of one that nobody knows', [{ ask: { ...ask.ask, episodeId: 'z' } }]],
  ['a question without any context', [{ ask: { ...ask.ask, newIds: [] } }]],
  ['a question for no tokens', [{ ask: { ...ask.ask, maxTokens: 0 } }]],
  ['a question of one that has ended', [ended, ask]],
  ['the same end twice', [ended, ended]],
  ['the end of one that was not told to begin', [{ ended: failedEpisode(other, 'fake', 'policy-failure', 'why') }]],
])('%s is refused', (_, body) => {
  const host = talk();
  host.told([{ begin: request }]);
  expect(() => host.heard(body)).toThrow('a sandbox host sent something else than');
});
