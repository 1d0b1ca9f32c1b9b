/** @module The recorded policy: does again what the policy of a record did. It samples nothing: actions, tokens and logprobs are the record's own. */
import { CUT_OFF } from '../records/stop-reason.ts';
import type { Episode } from '../records/trajectory.ts';
import type { Policy, PolicyReply } from './policy.ts';
import { TABULAR } from './tabular-policy.ts';

/**
 * For the episodes of these ids alone, one after another. Where a record goes no further the policy fails, in the words of
 * the record.
 * @param name that of the policy that made them
 */
export function recordedPolicy(name: string, episodes: readonly Episode[]): Policy {
  const byId = new Map(episodes.map((episode) => [episode.id, episode]));
  const own = name === TABULAR;
  let version = 0;
  return {
    name,
    tokens: own ? 'own' : 'text',
    /** That of the action given last: the loop reads it with each. */
    get version() {
      return version;
    },
    request({ episodeId, steps }) {
      const episode = byId.get(episodeId);
      if (episode === undefined || steps.length >= episode.steps.length) {
        throw new Error(episode?.stopDetail ?? 'the record goes no further');
      }
      const { reply, version: of } = recordedReply(episode, steps.length);
      version = of;
      return own ? reply : { ...reply, observed: [] };
    },
  };
}

/** What the policy of a record replied in one step, `observed` being all that it was given since the step before. */
export function recordedReply(
  episode: Episode,
  index: number,
): { readonly reply: PolicyReply; readonly version: number } {
  const step = episode.steps[index];
  if (step === undefined) throw new Error(`expected a step ${index} of episode ${episode.id}`);
  const { segment, start, end } = step.tokens;
  const tokens = episode.segments[segment];
  const before = episode.steps[index - 1]?.tokens;
  const from = before?.segment === segment ? before.end : 0;
  const logprobs = tokens?.logprobs.slice(start, end) ?? [];
  const reply: PolicyReply = {
    action: step.action,
    observed: tokens?.ids.slice(from, start) ?? [],
    ids: tokens?.ids.slice(start, end) ?? [],
    logprobs: logprobs.every((logprob) => logprob !== null) ? logprobs : null,
    cutOff:
      index === episode.steps.length - 1 &&
      episode.stop === 'max-tokens' &&
      (episode.stopDetail ?? '').startsWith(CUT_OFF),
  };
  return { reply, version: tokens?.policyVersion[start] ?? 0 };
}
