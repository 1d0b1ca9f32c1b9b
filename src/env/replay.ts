/** @module Two records of one episode, compared link by link: the first that differs, and the value in it. */
import { carriedLinks, linksOf } from '../records/hash-chain.ts';
import { stopRule } from '../records/stop-reason.ts';
import type { Episode } from '../records/trajectory.ts';

export interface Difference {
  /** The step's index, from 0; null for what the episode began with and how it ended. */
  readonly step: number | null;
  /** Where in that step the value stands, e.g. `calls.0.observation`. */
  readonly what: string;
  /** As the record has it, as JSON. */
  readonly expected: string;
  /** As it came now, as JSON. */
  readonly found: string;
  /** The links: the one that the record carries, and the one that came now. */
  readonly hash: { readonly expected: string; readonly found: string };
  /** True where the record does not fit its own chain: it was changed since it was written. */
  readonly changed: boolean;
}

/**
 * Both what the record holds and the links that it carries are held against the same actions in a fresh world.
 * @param again these
 */
export function firstDifference(recorded: Episode, again: Episode): Difference | undefined {
  const [carried, held, found] = [carriedLinks(recorded), linksOf(recorded), [...carriedLinks(again)]];
  const changed = carried.some((link, i) => link !== held[i]);
  // The end of such an episode is held against its own links alone.
  if (stopRule(recorded.stop).outside) found[carried.length - 1] = held.at(-1) as string;
  // The first link covers what it began with too.
  const begun = differingValue(partOf(recorded, -1), partOf(again, -1), '');
  const at = begun === undefined ? found.findIndex((link, i) => link !== held[i] || link !== carried[i]) : 0;
  if (at < 0 && found.length === held.length) return undefined;
  const hash = { expected: carried[at] ?? 'none', found: found[at] ?? 'none' };
  const named = begun ?? differingValue(partOf(recorded, at), partOf(again, at), '');
  const step = begun !== undefined || at >= recorded.steps.length ? null : at;
  return { step, ...(named ?? { what: 'hash', ...hash }), hash, changed };
}

/** Where a record does not fit its own chain, which shows without executing it; undefined where it does. */
export function brokenLink(recorded: Episode): Difference | undefined {
  const [carried, held] = [carriedLinks(recorded), linksOf(recorded)];
  const at = held.findIndex((link, i) => link !== carried[i]);
  if (at < 0 && carried.length === held.length) return undefined;
  const hash = { expected: carried[at] ?? 'none', found: held[at] ?? 'none' };
  return { step: at < recorded.steps.length ? at : null, what: 'hash', ...hash, hash, changed: true };
}

/** What a link covers beyond the one before: the steps, then the end; −1 what the first covers first. */
function partOf(episode: Episode, index: number): object {
  const { format, id, group, taskId, iteration, rollout, seed, policy, prompt, forkedFrom } = episode;
  if (index < 0) return { format, id, group, taskId, iteration, rollout, seed, policy, prompt, forkedFrom };
  const { steps, segments, stop, stopDetail, failure, final } = episode;
  const step = steps[index];
  if (step === undefined) return { stop, stopDetail, failure, final, segments };
  const { hash: _, ...rest } = step;
  const { ids, actionMask, logprobs, policyVersion } = segments[step.tokens.segment] ?? {};
  const tokens = [ids, actionMask, logprobs, policyVersion].map((per) => per?.slice(0, step.tokens.end));
  return { ...rest, given: tokens };
}

/** The first value in which two JSON values differ. */
function differingValue(
  expected: unknown,
  found: unknown,
  path: string,
): Pick<Difference, 'what' | 'expected' | 'found'> | undefined {
  if (typeof expected !== 'object' || typeof found !== 'object' || expected === null || found === null) {
    const [a, b] = [expected, found].map((value) => JSON.stringify(value) ?? 'none') as [string, string];
    return a === b ? undefined : { what: path.slice(1), expected: a, found: b };
  }
  for (const key of new Set([...Object.keys(expected), ...Object.keys(found)])) {
    const [a, b] = [expected, found].map((object) => (object as { readonly [key: string]: unknown })[key]);
    const inner = differingValue(a, b, `${path}.${key}`);
    if (inner !== undefined) return inner;
  }
  return undefined;
}
