/**
 * @module The hash chain of an episode: each link is the SHA-256 of the link before and of one part of the record, so that
 * two records with the same last link are the same record, and the first link that differs names the step that does.
 *
 * A link's text is the JSON of one array, whose places stand below; what is absent is null, and `arguments` is a text: its
 * canonical JSON. It finds damage and chance. It is no signature: who can change the record can make its chain anew.
 */
import { hash } from 'node:crypto';
import type { Json } from './json.ts';
import type { Episode, Segment, Step } from './trajectory.ts';

export type UnlinkedStep = Omit<Step, 'hash'>;
export type UnlinkedEpisode = Omit<Episode, 'hash' | 'steps'> & { readonly steps: readonly UnlinkedStep[] };

type Beginning = Pick<
  Episode,
  'format' | 'id' | 'group' | 'taskId' | 'iteration' | 'rollout' | 'seed' | 'policy' | 'prompt' | 'forkedFrom'
>;
type Ending = Pick<Episode, 'stop' | 'stopDetail' | 'failure' | 'final'>;

/** What an episode began with: the link before its first step. */
export function beginningLink(episode: Beginning): string {
  const { format, id, group, taskId, iteration, rollout, seed, policy, prompt, forkedFrom: from } = episode;
  const fork = from && [from.episode, from.step, from.seed];
  return link([format, id, group, taskId, iteration, rollout, seed, policy, prompt, fork]);
}

/** @param tokens the segment of `step.tokens`, from which the link covers all tokens since the step before; absent where it has none */
export function stepLink(before: string, step: UnlinkedStep, tokens: Segment | undefined, from: number): string {
  const { index, action, calls, tokens: at } = step;
  return link([
    before,
    index,
    action.text,
    action.final,
    action.calls.map((call) => [
      call.id,
      call.name,
      call.arguments && canonical(call.arguments),
      call.raw,
      call.malformed,
    ]),
    calls.map(({ callId, tool, states, attempts, observation, error, retried }) => [
      ...[callId, tool, states, attempts, observation, error, retried],
    ]),
    [at.segment, at.start, at.end],
    tokensFrom(tokens, from, at.end),
  ]);
}

/**
 * The last link: how it ended, and the tokens after the last step.
 * @param tokens the segment of the last step
 * @param others of each other segment, in order, what no step's link covers
 */
export function endingLink(
  before: string,
  ending: Ending,
  tokens: Segment | undefined,
  from: number,
  others: readonly Rest[] = [],
): string {
  const { stop, stopDetail, failure, final } = ending;
  return link([before, stop, stopDetail, failure, final, ...restOf(tokens, from), ...others]);
}

/** What no step's link covers of a segment: whether it is trained on, and the tokens from `from` on. */
type Rest = readonly [trainable: boolean | undefined, tokens: readonly unknown[]];

function restOf(segment: Segment | undefined, from: number): Rest {
  return [segment?.trainable, tokensFrom(segment, from)];
}

/** The links of a whole record, one a step and the last. */
export function linksOf({ segments, ...episode }: UnlinkedEpisode): readonly string[] {
  const links: string[] = [];
  let before = beginningLink(episode);
  let last = 0;
  /** By segment: how many tokens of it the links so far cover. */
  const covered = new Map<number, number>();
  for (const step of episode.steps) {
    const { segment, end } = step.tokens;
    before = stepLink(before, step, segments[segment], covered.get(segment) ?? 0);
    covered.set(segment, end);
    last = segment;
    links.push(before);
  }
  const others = segments.flatMap((one, i) => (i === last ? [] : [restOf(one, covered.get(i) ?? 0)]));
  return [...links, endingLink(before, episode, segments[last], covered.get(last) ?? 0, others)];
}

/** The links that a record carries. */
export function carriedLinks(episode: Episode): readonly string[] {
  return [...episode.steps.map((step) => step.hash), episode.hash];
}

const NO_TOKENS = { ids: [], actionMask: [], logprobs: [], policyVersion: [] } as const;

function tokensFrom(segment: Segment | undefined, from: number, to?: number): readonly unknown[] {
  const { ids, actionMask, logprobs, policyVersion } = segment ?? NO_TOKENS;
  return [ids, actionMask, logprobs, policyVersion].map((per) => per.slice(from, to));
}

function link(parts: readonly unknown[]): string {
  return hash('sha256', JSON.stringify(parts));
}

/** RFC 8785: no spaces, keys in the order of their UTF-16 code units. */
function canonical(value: Json): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  const object = value as { readonly [key: string]: Json };
  const members = Object.keys(object);
  // Nearly all arguments are of one text or number: the engine writes these as they are to be written.
  const [only] = members;
  if (members.length === 1 && typeof object[only as string] !== 'object') return JSON.stringify(object);
  members.sort();
  return `{${members.map((key) => `${JSON.stringify(key)}:${canonical(object[key] as Json)}`).join(',')}}`;
}
