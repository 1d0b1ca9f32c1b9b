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

/**
 * The first `step` actions of a record, then the policy's own. The record's tokens are given to it, as the environment's are:
 * it has not sampled them, and learns nothing from them.
 */
export function forkedPolicy(policy: Policy, parent: Episode, step: number): Policy {
  const own = policy.tokens === 'own';
  return {
    name: policy.name,
    tokens: policy.tokens,
    get version() {
      return policy.version;
    },
    release: (episodeId) => policy.release?.(episodeId),
    request(context, signal) {
      const at = context.steps.length;
      if (at > step) return policy.request(context, signal);
      if (at === step) return policy.request({ ...context, newFrom: 0 }, signal);
      const { action, observed = [], ids, cutOff } = recordedReply(parent, at).reply;
      return { action, observed: own ? [...observed, ...ids] : ids, ids: [], logprobs: [], cutOff };
    },
  };
}

/**
 * The actions of an episode that was suspended, as they were sampled, then the policy's own. What was sampled keeps its logprobs
 * and the version that sampled it; the policy is given all of it as context when it is first asked.
 */
export function continuedPolicy(policy: Policy, suspended: Episode): Policy {
  const { length } = suspended.steps;
  /** Of the record's action that was given last; undefined once the policy's own have begun. */
  let recorded: number | undefined;
  return {
    ...policy,
    get version() {
      return recorded ?? policy.version;
    },
    request(context, signal) {
      const at = context.steps.length;
      recorded = undefined;
      if (at > length) return policy.request(context, signal);
      if (at === length) return policy.request({ ...context, newFrom: 0 }, signal);
      const { reply, version: of } = recordedReply(suspended, at);
      recorded = of;
      return { ...reply, observed: [] };
    },
  };
}

/** After how many of its steps an episode can be gone on: not after a final answer, an action that was cut off, or a crash. */
export function stepsToGoOnAfter(episode: Episode): number {
  const end = episode.steps.findIndex(
    ({ action, calls }, i) =>
      action.final !== undefined ||
      recordedReply(episode, i).reply.cutOff ||
      calls.some(({ states }) => states.at(-1) === 'crashed'),
  );
  return end < 0 ? episode.steps.length : end;
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
