/**
 * @module The hash chain of an episode: each link is the SHA-256 of the link before and of one part of the record, so that
 * two records with the same last link are the same record, and the first link that differs names the step that does.
 *
 * Which values a link covers, and in which order, stands below; in which bytes, in `link-bytes.ts`. What is absent is null.
 * It finds damage and chance. It is no signature: who can change the record can make its chain anew.
 */
import type { Action, ToolCall } from './action.ts';
import { LinkBytes } from './link-bytes.ts';
import type { CallRecord, CallState, Episode, Segment, Step } from './trajectory.ts';

export type UnlinkedStep = Omit<Step, 'hash'>;
export type UnlinkedEpisode = Omit<Episode, 'hash' | 'steps'> & { readonly steps: readonly UnlinkedStep[] };

/** What an episode begins with: the first link covers it in place of a link before. */
export type Beginning = Pick<
  Episode,
  'format' | 'id' | 'group' | 'taskId' | 'iteration' | 'rollout' | 'seed' | 'policy' | 'prompt' | 'forkedFrom'
>;
type Ending = Pick<Episode, 'stop' | 'stopDetail' | 'failure' | 'final'>;

/** Written and hashed in one go, so that one is enough. */
const to = new LinkBytes();

function start(before: string | Beginning): void {
  if (typeof before === 'string') {
    to.start(before);
    return;
  }
  const { format, id, group, taskId, iteration, rollout, seed, policy, prompt, forkedFrom: from } = before;
  to.start('');
  to.text(format);
  to.text(id);
  to.text(group);
  to.text(taskId);
  to.integer(iteration);
  to.integer(rollout);
  to.text(seed);
  to.text(policy);
  to.text(prompt);
  if ((from ?? undefined) !== undefined && typeof from?.episode !== 'string') {
    to.oddWhole(from);
    return;
  }
  to.text(from?.episode);
  to.number(from?.step ?? null);
  to.text(from?.seed);
}

/** @param tokens the segment of `step.tokens`, from which the link covers all tokens since the step before; absent where it has none */
export function stepLink(
  before: string | Beginning,
  step: UnlinkedStep,
  tokens: Segment | undefined,
  from: number,
): string {
  const { index, action, calls, tokens: at } = step;
  start(before);
  to.integer(index);
  const made = hasMembers(action) ? actionCalls(action) : NONE;
  for (let i = 0, count = listed(calls); i < count; i++) record(calls[i] as CallRecord, made[i]);
  if (hasMembers(at)) {
    to.integer(at.segment);
    to.integer(at.start);
    to.integer(at.end);
  }
  tokensFrom(tokens, from, at?.end);
  return to.digest();
}

const NONE: readonly never[] = [];

function actionCalls({ text, final, calls }: Action): readonly ToolCall[] {
  to.text(text);
  to.text(final);
  const count = listed(calls);
  for (let i = 0; i < count; i++) {
    const call = calls[i] as ToolCall;
    if (!hasMembers(call)) continue;
    to.text(call.id);
    to.text(call.name);
    to.text(call.raw);
    to.json(call.arguments, call.raw);
    to.text(call.malformed);
  }
  return count === 0 ? NONE : calls;
}

function record(of: CallRecord, call: ToolCall | undefined): void {
  if (!hasMembers(of)) return;
  const { id = '', name = '' } = call ?? {};
  to.same(of.callId, id);
  to.same(of.tool, name);
  states(of.states);
  to.integer(of.attempts);
  to.text(of.observation);
  to.text(of.error);
  const { retried } = of;
  if (retried === undefined || retried === null) to.number(null);
  else if (!Array.isArray(retried)) to.odd(retried);
  else {
    to.number(retried.length);
    for (const why of retried) to.text(why);
  }
}

/** Whether its members can be written. A record that was damaged may hold anything in its place, which is written instead. */
function hasMembers(value: unknown): boolean {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return true;
  to.oddWhole(value);
  return false;
}

/** Writes how many there are, and gives it; what is no list is written instead. */
function listed(value: readonly unknown[]): number {
  if (!Array.isArray(value)) {
    to.odd(value);
    return 0;
  }
  to.integer(value.length);
  return value.length;
}

/**
 * The last link: how it ended, and the tokens after the last step.
 * @param tokens the segment of the last step
 * @param others of each other segment, in order, what no step's link covers
 */
export function endingLink(
  before: string | Beginning,
  ending: Ending,
  tokens: Segment | undefined,
  from: number,
  others: readonly Rest[] = [],
): string {
  const { stop, stopDetail, failure, final } = ending;
  start(before);
  to.text(stop);
  to.text(stopDetail);
  to.text(failure);
  to.text(final);
  restOf(tokens, from);
  for (const other of others) restOf(other.segment, other.from);
  return to.digest();
}

/** A segment, and how many of its tokens the links of the steps cover. */
interface Rest {
  readonly segment: Segment;
  readonly from: number;
}

/** What no step's link covers of a segment: whether it is trained on, how long it is, and the tokens from `from` on. */
function restOf(segment: Segment | undefined, from: number): void {
  to.json(segment?.trainable ?? null, '');
  if (!isRegular(segment)) {
    to.odd(segment);
    return;
  }
  const { ids, actionMask, logprobs, policyVersion } = segment ?? NO_TOKENS;
  for (const per of [ids, actionMask, logprobs, policyVersion]) to.integer(per.length);
  tokensFrom(segment, from, ids.length);
}

/** The links of a whole record, one a step and the last. */
export function linksOf({ segments, ...episode }: UnlinkedEpisode): readonly string[] {
  const links: string[] = [];
  let before: string | Beginning = episode;
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
  const others = segments.flatMap((segment, i) => (i === last ? [] : [{ segment, from: covered.get(i) ?? 0 }]));
  return [...links, endingLink(before, episode, segments[last], covered.get(last) ?? 0, others)];
}

/** The links that a record carries. */
export function carriedLinks(episode: Episode): readonly string[] {
  return [...episode.steps.map((step) => step.hash), episode.hash];
}

const NO_TOKENS = { ids: [], actionMask: [], logprobs: [], policyVersion: [] } as const;

/** Whether it has the same of each token, or there is none. One of a record that was damaged is written whole. */
function isRegular(segment: Segment | undefined): boolean {
  if (segment === undefined) return true;
  const { ids, actionMask, logprobs, policyVersion, trainable } = segment ?? {};
  return (
    isListOf(ids?.length, ids) &&
    isListOf(ids.length, actionMask) &&
    isListOf(ids.length, logprobs) &&
    isListOf(ids.length, policyVersion) &&
    typeof trainable === 'boolean'
  );
}

function isListOf(length: number, value: unknown): boolean {
  return Array.isArray(value) && value.length === length;
}

/** How many, and each: its id, then 0 where it was given and has nothing more, else 1, its mask, logprob and version. */
function tokensFrom(segment: Segment | undefined, after: number, until: number): void {
  if (!isRegular(segment)) {
    to.odd(segment);
    return;
  }
  const { ids, actionMask, logprobs, policyVersion } = segment ?? NO_TOKENS;
  const from = isCount(after) ? after : 0;
  const end = isCount(until) ? Math.min(until, ids.length) : ids.length;
  to.integer(Math.max(0, end - from));
  for (let i = from; i < end; i++) {
    to.integer(ids[i]);
    if (actionMask[i] === 0 && logprobs[i] === null && policyVersion[i] === null) {
      to.integer(0);
      continue;
    }
    to.integer(1);
    to.integer(actionMask[i]);
    to.number(logprobs[i]);
    to.number(policyVersion[i]);
  }
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

/** Each by a number; 0 ends them. */
function states(course: readonly CallState[]): void {
  if (!Array.isArray(course)) {
    to.oddWhole(course);
    return;
  }
  for (let i = 0; i < course.length; i++) {
    const number = numberOf(course[i] as CallState);
    if (number === undefined) to.odd(course[i]);
    else to.integer(number);
  }
  to.integer(0);
}

function numberOf(state: CallState): number | undefined {
  switch (state) {
    case 'issued':
      return 1;
    case 'running':
      return 2;
    case 'ok':
      return 3;
    case 'error':
      return 4;
    case 'crashed':
      return 5;
    case 'timeout':
      return 6;
    case 'skipped':
      return 7;
    default:
      return undefined;
  }
}
