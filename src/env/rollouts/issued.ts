/**
 * @module What an episode may hold of sampled tokens, and which ends from outside it may have, by what its owner issued. Its form
 * has been read (see `untrusted.ts`, `unpack.ts`); what its world did is not asked here.
 */
import type { TokenReply, TokenRequest } from '../../policy/token-policy.ts';
import type { Action } from '../../records/action.ts';
import { type StopReason, stopRule } from '../../records/stop-reason.ts';
import type { Episode, Segment, Step } from '../../records/trajectory.ts';
import { untrusted } from '../sandbox/host/protocol.ts';
import type { TokenAnswer } from './batcher.ts';
import type { Fork, RolloutRequest } from './rollouts.ts';
import type { Halt } from './schedule.ts';

/** One request of an episode and what it was answered; undefined where it was not, or was answered with an error. */
export interface Told {
  readonly request: TokenRequest;
  readonly answer: TokenAnswer | undefined;
}

const NO_TOKENS: Segment = { ids: [], actionMask: [], logprobs: [], policyVersion: [], trainable: true };

/**
 * Of a policy that acted beside the world, whose tokens nobody else knows: sampled are those that the steps claim, each with the
 * version of the policy, and with a logprob that can be one. What was packed can be nothing else: `unpack.ts` sees to it.
 * @param version null where a record says it
 * @param cancelled whether the run was
 * @throws UNTRUSTED
 */
export function checkActed(episode: Episode, version: number | null, cancelled: boolean): void {
  checkEnd(episode.stop, undefined, cancelled);
  const segment = episode.segments[0] ?? NO_TOKENS;
  let end = 0;
  for (const { tokens } of episode.steps) {
    if (tokens.start < end) throw untrusted('steps whose tokens follow each other');
    end = tokens.end;
    for (let i = tokens.start; i < end; i++) {
      const logprob = segment.logprobs[i] ?? null;
      if (logprob === null ? segment.trainable : !(Number.isFinite(logprob) && logprob <= 0))
        throw untrusted('a logprob of at most 0');
      if (version !== null && segment.policyVersion[i] !== version) throw untrusted(`version ${version} of its policy`);
    }
  }
  checkMask(segment, episode.steps);
}

/** What a reply reads as, after these steps. */
export type ReadReply = (reply: TokenReply, steps: readonly Step[]) => Action;

/**
 * Of a policy that was asked: tokens, logprobs, version and end are those that it was told, in their places, and so are its actions
 * and with them the answer that is scored.
 * @param told all that it asked, in order
 * @throws UNTRUSTED
 */
export function checkTold(
  episode: Episode,
  { fork }: Pick<RolloutRequest, 'fork'>,
  told: readonly Told[],
  { version, cancelled, read }: { readonly version: number; readonly cancelled: boolean; readonly read: ReadReply },
): void {
  const { steps, stop, stopDetail, final } = episode;
  const segment = episode.segments[0] ?? NO_TOKENS;
  const last = told.at(-1)?.answer;
  checkEnd(stop, last !== undefined && 'halt' in last ? { ...last, stopDetail } : undefined, cancelled);

  const from = fork?.step ?? 0;
  const runs: (Run | undefined)[] = fork === undefined ? [] : runsOf(fork);
  const replies: TokenReply[] = [];
  let length = 0;
  for (const { request, answer } of told) {
    const { newIds } = request;
    if (!isAt(segment.ids, length, newIds)) throw untrusted('the context that it asked with');
    length += newIds.length;
    if (answer === undefined || 'halt' in answer) continue;
    runs.push({ start: length, ids: answer.ids, logprobs: answer.logprobs, version });
    replies.push(answer);
    length += answer.ids.length;
  }

  // A failure is not learnt from: it may end before what it was told last, and one that never began holds nothing.
  const failed = stopRule(stop).ends === 'failed';
  if (failed ? steps.length > runs.length : steps.length !== runs.length) throw untrusted('a step for each reply');
  if (told.length > 0 && (failed ? segment.ids.length > length : segment.ids.length !== length)) {
    throw untrusted('the tokens that it was told');
  }
  let trainable = true;
  for (const [i, { tokens, action }] of steps.entries()) {
    const reply = replies[i - from];
    const acted = reply === undefined ? fork?.parent.steps[i]?.action : read(reply, steps.slice(0, i));
    // As JSON, in which it came.
    if (JSON.stringify(action) !== JSON.stringify(acted)) throw untrusted('the action that it was told');
    const run = runs[i];
    if (run === undefined) {
      // Those of its parent were given.
      if (i >= from || tokens.start !== tokens.end) throw untrusted('a step for each reply');
    } else {
      if (!isRun(segment, tokens, run)) throw untrusted('the tokens that it was told');
      trainable &&= run.logprobs !== null;
    }
  }
  if (final !== null && final !== steps.at(-1)?.action.final) throw untrusted('the answer of its last action');
  if (segment.trainable !== trainable) throw untrusted('trainable where each sampled token has its logprob');
  checkMask(segment, steps);
}

interface Run {
  readonly start: number;
  readonly ids: readonly number[];
  readonly logprobs: readonly (number | null)[] | null;
  readonly version: number | null;
}

/** What was sampled before it was forked: of one that goes on its own, of others nothing. */
function runsOf({ parent, step, goesOn }: Fork): (Run | undefined)[] {
  return parent.steps.slice(0, step).map(({ tokens: { segment, start, end } }) => {
    const { ids, logprobs, policyVersion } = parent.segments[segment] ?? NO_TOKENS;
    if (goesOn !== true) return undefined;
    const own = logprobs.slice(start, end);
    const version = policyVersion[start] ?? null;
    return { start, ids: ids.slice(start, end), logprobs: own.includes(null) ? null : own, version };
  });
}

function isRun({ ids, logprobs, policyVersion }: Segment, { start, end }: Step['tokens'], run: Run): boolean {
  if (start !== run.start || end !== start + run.ids.length || end > ids.length) return false;
  return run.ids.every((id, i) => {
    const at = start + i;
    return ids[at] === id && logprobs[at] === (run.logprobs?.[i] ?? null) && policyVersion[at] === run.version;
  });
}

/** Whether `part` stands there, as far as `ids` goes. */
function isAt(ids: readonly number[], at: number, part: readonly number[]): boolean {
  return part.every((id, i) => at + i >= ids.length || ids[at + i] === id);
}

/** Sampled are the tokens of the steps; the others have neither logprob nor version. */
function checkMask({ actionMask, logprobs, policyVersion }: Segment, steps: readonly Step[]): void {
  let claimed = 0;
  for (const { tokens } of steps) {
    for (let i = tokens.start; i < tokens.end; i++) if (actionMask[i] !== 1) throw untrusted('sampled actions');
    claimed += tokens.end - tokens.start;
  }
  let sampled = 0;
  for (let i = 0; i < actionMask.length; i++) {
    if (actionMask[i] === 1) sampled++;
    else if (logprobs[i] !== null || policyVersion[i] !== null) throw untrusted('no logprob of what was given');
  }
  if (sampled !== claimed) throw untrusted('sampled tokens that a step claims');
}

/** @param halt with which it was told to end, and how it says so. @throws UNTRUSTED */
export function checkEnd(
  stop: StopReason,
  halt: (Halt & { readonly stopDetail: string | undefined }) | undefined,
  cancelled: boolean,
): void {
  const rule = stopRule(stop);
  if (stop === 'cancelled' ? cancelled : rule.ends === 'failed') return;
  if (halt === undefined ? rule.outside === true : stop !== halt.halt || halt.detail !== halt.stopDetail) {
    throw untrusted('an end that it was told to come to');
  }
}
