/**
 * @module Episodes and requests as a sandbox host sends them, read as if an attacker had written them. What the owner knows
 * already is compared and never taken over; lengths and kinds of all else are checked. Not a parser: JSON has been read.
 */
import type { TokenRequest } from '../../policy/token-policy.ts';
import { isDeeper, type Json, MAX_DEPTH } from '../../records/json.ts';
import { STOP_RULES } from '../../records/stop-reason.ts';
import { EPISODE_KEYS, type Episode, TRAJECTORY_FORMAT } from '../../records/trajectory.ts';
import { objectOf, untrusted } from '../sandbox/host/protocol.ts';
import { forkedFrom, type RolloutRequest } from './rollouts.ts';

/** What the owner knows of all episodes of a pool. */
export interface KnownBounds {
  /** Ids are below it. */
  readonly vocabulary: number;
  readonly maxSteps: number;
  /** Ids of one episode. */
  readonly maxTokens: number;
}

type Known = ReadonlySet<string>;
const SEGMENT: Known = new Set(['ids', 'actionMask', 'logprobs', 'policyVersion', 'trainable']);
const STEP: Known = new Set(['index', 'action', 'calls', 'tokens', 'hash']);
const TOKENS: Known = new Set(['segment', 'start', 'end']);
const ACTION: Known = new Set(['text', 'calls', 'final']);
const CALL: Known = new Set(['id', 'name', 'arguments', 'raw', 'malformed']);
const RECORD: Known = new Set(['callId', 'tool', 'states', 'attempts', 'observation', 'error', 'retried']);
const REQUEST: Known = new Set(['episodeId', 'newIds', 'maxTokens', 'seed']);
const FAILURES: Known = new Set(['out-of-memory', 'hang', 'untrusted', 'died']);
const STATES: Known = new Set(['issued', 'running', 'ok', 'error', 'crashed', 'timeout', 'skipped']);
/** Longest text of any kind, in UTF-16 code units; what an episode may hold altogether is bounded by its frame. */
export const MAX_TEXT = 4 * 1024 * 1024;

/** One episode for each request, in order. @throws UNTRUSTED */
export function readEpisodes(
  value: unknown,
  requests: readonly RolloutRequest[],
  policy: string,
  bounds: KnownBounds,
): readonly Episode[] {
  const found = arrayOf(value, 'episodes', requests.length);
  if (found.length !== requests.length) throw untrusted(`${requests.length} episodes`);
  return requests.map((request, i) => readEpisode(found[i], request, policy, bounds));
}

/** The episode that came of `request`. @throws UNTRUSTED */
export function readEpisode(value: unknown, request: RolloutRequest, policy: string, bounds: KnownBounds): Episode {
  const episode = objectOf(value);
  only(episode, EPISODE_KEYS, 'an episode');
  const own = (key: string, expected: unknown) => {
    if (episode[key] !== expected) throw untrusted(`the ${key} that was asked for`);
  };
  own('format', TRAJECTORY_FORMAT);
  own('id', request.id);
  own('group', request.group);
  own('taskId', request.task.id);
  own('iteration', request.iteration);
  own('rollout', request.rollout);
  own('seed', request.seed);
  own('policy', policy);
  own('prompt', request.task.prompt);
  if (isDeeper(episode.forkedFrom, 1) || JSON.stringify(episode.forkedFrom) !== JSON.stringify(forkedFrom(request))) {
    throw untrusted('the fork asked for');
  }
  const { stop, stopDetail, failure, final, hash } = episode;
  if (typeof stop !== 'string' || !Object.hasOwn(STOP_RULES, stop)) throw untrusted('a stop reason');
  if (stopDetail !== undefined) text(stopDetail, 'stopDetail');
  if (stop === 'sandbox-failure' ? !FAILURES.has(failure as string) : failure !== undefined) {
    throw untrusted('a failure with its kind');
  }
  if (final !== null) text(final, 'final');
  if ((stop === 'final') !== (final !== null)) throw untrusted('a final answer where it stopped with one');
  link(hash);
  const lengths = arrayOf(episode.segments, 'segments', 1).map((segment) => readSegment(segment, bounds));
  for (const [i, step] of arrayOf(episode.steps, 'steps', bounds.maxSteps).entries()) readStep(step, i, lengths);
  return value as Episode;
}

/** @throws UNTRUSTED */
export function readTokenRequest(
  value: unknown,
  known: { has(episodeId: string): boolean },
  bounds: KnownBounds,
): TokenRequest {
  const ask = objectOf(value);
  const { episodeId, newIds, maxTokens, seed } = ask;
  only(ask, REQUEST, 'a request for tokens');
  if (typeof episodeId !== 'string' || !known.has(episodeId)) throw untrusted('an episode that was asked for');
  ids(newIds, bounds);
  // What the policy refuses of one, it refuses of all who join with it.
  if (count(maxTokens, 'maxTokens', bounds.maxTokens) === 0) throw untrusted('maxTokens above 0');
  text(seed, 'seed');
  return value as TokenRequest;
}

function readSegment(value: unknown, bounds: KnownBounds): number {
  const segment = objectOf(value);
  only(segment, SEGMENT, 'a segment');
  const { length } = ids(segment.ids, bounds);
  const per = (key: string, allowed: (one: unknown) => boolean) => {
    const all = arrayOf(segment[key], key, length);
    if (all.length !== length || !all.every(allowed)) throw untrusted(`one ${key} for each token`);
  };
  per('actionMask', (bit) => bit === 0 || bit === 1);
  per('logprobs', (logprob) => logprob === null || Number.isFinite(logprob));
  per('policyVersion', (version) => version === null || Number.isSafeInteger(version));
  if (typeof segment.trainable !== 'boolean') throw untrusted('trainable, true or false');
  return length;
}

function readStep(value: unknown, index: number, lengths: readonly number[]): void {
  const step = objectOf(value);
  only(step, STEP, 'a step');
  if (step.index !== index) throw untrusted('steps in order');
  link(step.hash);
  const action = objectOf(step.action);
  only(action, ACTION, 'an action');
  text(action.text, 'an action');
  if (action.final !== undefined) text(action.final, 'a final answer');
  const calls = arrayOf(action.calls, 'calls', MAX_TEXT);
  const records = arrayOf(step.calls, 'call records', calls.length);
  if (records.length !== calls.length) throw untrusted('one record for each call');
  for (const [i, call] of calls.entries()) readCall(objectOf(call), objectOf(records[i]));
  const tokens = objectOf(step.tokens);
  only(tokens, TOKENS, 'a range of tokens');
  const { segment, start, end } = tokens;
  const length = lengths[count(segment, 'segment', lengths.length)] ?? 0;
  if (count(start, 'start', length) > count(end, 'end', length)) throw untrusted('tokens from start to end');
}

function readCall(call: { readonly [key: string]: unknown }, record: { readonly [key: string]: unknown }): void {
  only(call, CALL, 'a call');
  text(call.id, 'id');
  text(call.name, 'name');
  text(call.raw, 'raw');
  if (call.malformed !== undefined) text(call.malformed, 'malformed');
  const args = call.arguments as Json | undefined;
  if (args === undefined || typeof args !== 'object' || Array.isArray(args)) throw untrusted('arguments or null');
  if (isDeeper(args, MAX_DEPTH)) throw untrusted(`arguments of at most ${MAX_DEPTH} levels`);
  only(record, RECORD, 'a call record');
  if (record.callId !== call.id || record.tool !== call.name) throw untrusted('the record of its call');
  if (!arrayOf(record.states, 'states', 10).every((state) => STATES.has(state as string))) {
    throw untrusted('states of a call');
  }
  count(record.attempts, 'attempts', 2);
  text(record.observation, 'observation');
  if (record.error !== undefined) text(record.error, 'error');
  if (record.retried !== undefined) for (const why of arrayOf(record.retried, 'retried', 2)) text(why, 'retried');
}

function ids(value: unknown, { vocabulary, maxTokens }: KnownBounds): readonly unknown[] {
  const all = arrayOf(value, 'ids', maxTokens);
  if (!all.every((id) => typeof id === 'number' && Number.isSafeInteger(id) && id >= 0 && id < vocabulary)) {
    throw untrusted(`ids below ${vocabulary}`);
  }
  return all;
}

function arrayOf(value: unknown, what: string, max: number): readonly unknown[] {
  if (!Array.isArray(value) || value.length > max) throw untrusted(`at most ${max} ${what}`);
  return value;
}

function text(value: unknown, what: string): void {
  if (typeof value !== 'string' || value.length > MAX_TEXT) throw untrusted(`${what} as a text`);
}

/** In form alone: an attacker can make a chain that fits its lies, and `isogym replay` finds both. */
function link(value: unknown): void {
  if (typeof value !== 'string' || !/^[0-9a-f]{64}$/.test(value)) throw untrusted('the links of a hash chain');
}

function count(value: unknown, what: string, max: number): number {
  if (!(typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= max)) {
    throw untrusted(`${what} from 0 to ${max}`);
  }
  return value;
}

function only(object: { readonly [key: string]: unknown }, keys: Known, what: string): void {
  for (const key of Object.keys(object)) if (!keys.has(key)) throw untrusted(`the members of ${what}`);
}
