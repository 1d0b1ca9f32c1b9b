/** @module The episode loop: observe, decide, act, until an end that is always recorded. Four decisions, and the lines that take them. */
import type { Policy, PolicyContext, PolicyReply } from '../policy/policy.ts';
import type { Tokenizer } from '../policy/tokenizer.ts';
import { IsogymError, messageOf } from '../records/errors.ts';
import { deriveSeed, generator } from '../records/random.ts';
import { CUT_OFF } from '../records/stop-reason.ts';
import type { CallRecord, Episode } from '../records/trajectory.ts';
import type { Environment } from './environment.ts';
import type { Format } from './format.ts';
import { type Execution, executed, ToolRegistry } from './registry.ts';
import type { RolloutRequest } from './rollouts/rollouts.ts';
import type { Halt, HaltReason } from './rollouts/schedule.ts';
import type { WorldOutcome, WorldSession } from './sandbox/world-host.ts';
import { Transcript } from './transcript.ts';

/** All of an `AbortSignal` that the loop reads; a flag shared between threads can be one. */
export type StopSignal = Pick<AbortSignal, 'aborted'>;

/** Thrown to an episode in place of a reply: it is over, and no failure. */
export class Halted extends Error {
  readonly stop: HaltReason;

  constructor({ halt, detail }: Halt) {
    super(detail);
    this.stop = halt;
  }
}

export interface EpisodeSetup {
  readonly request: RolloutRequest;
  readonly environment: Pick<Environment, 'tools' | 'limits'>;
  readonly format: Format;
  readonly policy: Policy;
  readonly tokenizer: Tokenizer;
  readonly signal?: StopSignal;
}

/** What an episode waits for: the policy's action, or one execution of a tool in its world. */
export type Need = PolicyContext | Execution;

/** An episode on its way: it yields what it needs and is sent the reply or what the execution came to; a policy's failure is thrown to it. */
export type LiveEpisode = Generator<Need, Episode, PolicyReply & WorldOutcome>;

/**
 * Runs one episode. It never throws: whatever fails is the episode's stop reason.
 *
 * @param world opened for this episode; the caller closes it
 */
export async function runEpisode(setup: EpisodeSetup & { readonly world: WorldSession }): Promise<Episode> {
  const { policy, world } = setup;
  const episode = liveEpisode(setup);
  try {
    let next = episode.next();
    while (next.done !== true) {
      const need = next.value;
      next = 'tool' in need ? sent(episode, executed(need, world)) : await acted(episode, need, policy);
    }
    return next.value;
  } finally {
    policy.release?.(setup.request.id);
  }
}

/** Whether it has to be awaited, as `await` has it: also the promise of another realm or library. */
export function isLate<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as Partial<PromiseLike<T>> | null | undefined)?.then === 'function';
}

/** Has the policy act: at once where it can. */
export function acted(
  episode: LiveEpisode,
  context: PolicyContext,
  policy: Policy,
): IteratorResult<Need, Episode> | Promise<IteratorResult<Need, Episode>> {
  let reply: PolicyReply | PromiseLike<PolicyReply>;
  try {
    reply = policy.request(context);
    if (isLate(reply)) {
      return Promise.resolve(reply).then(
        (late) => sent(episode, late),
        (error: unknown) => episode.throw(error),
      );
    }
  } catch (error) {
    return episode.throw(error);
  }
  return sent(episode, reply);
}

/** It is sent what it asked for: of the two the one that it waits for. */
export function sent(episode: LiveEpisode, what: PolicyReply | WorldOutcome): IteratorResult<Need, Episode> {
  return episode.next(what as PolicyReply & WorldOutcome);
}

/**
 * The loop of one episode, whoever drives it.
 *
 * The segment is the unbroken sequence of prompt, action, observation, action, …; it ends with an action, for what no
 * request ever showed to the policy is not in its context. Nothing is encoded twice.
 */
export function* liveEpisode(setup: EpisodeSetup): LiveEpisode {
  const { request, environment, format, policy, tokenizer, signal } = setup;
  const { tools, limits } = environment;
  const transcript = new Transcript(request, policy.name);
  const registry = new ToolRegistry(tools, request.task, limits.maxCalls);
  const random = generator(deriveSeed(request.seed, 'policy'));
  let observed = format.prompt(request.task);
  let malformedInARow = 0;

  // The bound that holds whether or not the policy ever says that it is done.
  while (transcript.steps.length < limits.maxSteps) {
    if (signal?.aborted) return transcript.end('cancelled');

    // Decision 1, what goes into the context: everything, and where that no longer fits, the episode ends.
    const given = policy.tokens === 'text' ? tokenizer.encode(observed) : [];
    const room = limits.maxTokens - transcript.ids.length - given.length;
    if (room <= 0) return transcript.end('max-tokens', { detail: `the context is full: ${limits.maxTokens} tokens` });
    const newFrom = transcript.ids.length;
    transcript.give(given);

    const maxTokens = Math.min(limits.maxActionTokens, room);
    let reply: PolicyReply;
    try {
      reply = yield {
        episodeId: request.id,
        prompt: request.task.prompt,
        steps: transcript.steps,
        ids: transcript.ids,
        newFrom,
        maxTokens,
        random,
      };
      check(reply, maxTokens);
    } catch (error) {
      if (signal?.aborted) return transcript.end('cancelled');
      if (error instanceof Halted) return transcript.end(error.stop, { detail: error.message });
      return transcript.end('policy-failure', { detail: messageOf(error) });
    }
    const { action, cutOff } = reply;
    transcript.give(reply.observed ?? []);
    const tokens = transcript.sample(reply, policy.version);

    // Decision 3, when to stop. What was cut off is kept as text: it is no answer, and none of its calls is made.
    if (cutOff || action.final !== undefined) {
      const why = cutOff ? 'the action was cut off' : 'the action is a final answer';
      const calls = action.calls.map((call) => registry.skip(call, why));
      if (cutOff) {
        transcript.step({ text: action.text, calls: action.calls }, calls, tokens);
        return transcript.end('max-tokens', { detail: `${CUT_OFF} after ${maxTokens} tokens` });
      }
      transcript.step(action, calls, tokens);
      return transcript.end('final', { final: action.final as string });
    }

    // Decision 2, when to act: at once, every call, in order; decision 4, what to do when one fails, is the registry's.
    const calls: CallRecord[] = [];
    let crash: CallRecord | undefined;
    for (const call of action.calls) {
      const skipped = crash && registry.skip(call, 'an earlier call crashed');
      const record = skipped ?? (yield* registry.call(call));
      if (record.error !== undefined && record.states.at(-1) === 'crashed') crash = record;
      calls.push(record);
    }
    transcript.step(action, calls, tokens);
    if (crash !== undefined) {
      return transcript.end('sandbox-failure', { detail: crash.observation, failure: registry.failure ?? 'died' });
    }

    malformedInARow = action.calls.every((call) => call.arguments === null) ? malformedInARow + 1 : 0;
    if (malformedInARow >= limits.maxMalformed) {
      return transcript.end('malformed-limit', { detail: `${malformedInARow} malformed actions in a row` });
    }
    observed = format.observation(calls);
  }
  return transcript.end('max-steps', { detail: `no final answer in ${limits.maxSteps} steps` });
}

/** A reply that breaks the contract is a failure of the policy, before any of it is recorded. */
function check({ action, ids, logprobs, cutOff }: PolicyReply, maxTokens: number): void {
  const broken = (expected: string, found: string | number) =>
    new IsogymError('POLICY_REPLY', `the policy's reply: expected ${expected}, found ${found}`);
  if (ids.length > maxTokens) throw broken(`at most ${maxTokens} tokens`, ids.length);
  if (!cutOff && action.final === undefined && action.calls.length === 0) {
    throw broken('a call or a final answer', 'neither');
  }
  if (logprobs === null) return;
  if (logprobs.length !== ids.length) throw broken(`${ids.length} logprobs, one a token`, logprobs.length);
  const bad = logprobs.find((logprob) => !Number.isFinite(logprob));
  if (bad !== undefined) throw broken('finite logprobs', bad);
}
