/** @module The episode loop: observe, decide, act, until an end that is always recorded. Four decisions, and the lines that take them. */
import type { Policy, PolicyReply } from '../policy/policy.ts';
import type { Tokenizer } from '../policy/tokenizer.ts';
import { IsogymError, messageOf } from '../records/errors.ts';
import { deriveSeed, generator } from '../records/random.ts';
import { CUT_OFF } from '../records/stop-reason.ts';
import type { CallRecord, Episode, SandboxFailure } from '../records/trajectory.ts';
import type { Environment } from './environment.ts';
import type { Format } from './format.ts';
import { type Execute, ToolRegistry } from './registry.ts';
import type { RolloutRequest } from './rollouts.ts';
import type { WorldSession } from './sandbox/world-host.ts';
import type { Halt, HaltReason } from './schedule.ts';
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
  /** Opened for this episode; the caller closes it. */
  readonly world: WorldSession;
  readonly policy: Policy;
  readonly tokenizer: Tokenizer;
  readonly signal?: StopSignal;
}

/**
 * Runs one episode. It never throws: whatever fails is the episode's stop reason.
 *
 * The segment is the unbroken sequence of prompt, action, observation, action, …; it ends with an action, for what no
 * request ever showed to the policy is not in its context. Nothing is encoded twice.
 */
export async function runEpisode(setup: EpisodeSetup): Promise<Episode> {
  const { request, policy } = setup;
  const transcript = new Transcript(request, policy.name);
  try {
    return await loop(setup, transcript);
  } finally {
    policy.release?.(request.id);
  }
}

async function loop(setup: EpisodeSetup, transcript: Transcript): Promise<Episode> {
  const { request, environment, format, world, policy, tokenizer, signal } = setup;
  const { tools, limits } = environment;
  let failure: SandboxFailure | undefined;
  const execute: Execute = (tool, argsJson, timeoutMs) => {
    const outcome = world.call(tool, argsJson, timeoutMs);
    if (outcome.status === 'crashed') failure ??= outcome.kind;
    return outcome;
  };
  const registry = new ToolRegistry(tools, execute, limits.maxCalls);
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
      reply = await policy.request({
        episodeId: request.id,
        prompt: request.task.prompt,
        steps: transcript.steps,
        ids: transcript.ids,
        newFrom,
        maxTokens,
        random,
      });
      check(reply, maxTokens);
    } catch (error) {
      if (signal?.aborted) return transcript.end('cancelled');
      if (error instanceof Halted) return transcript.end(error.stop, { detail: error.message });
      return transcript.end('policy-failure', { detail: messageOf(error) });
    }
    const { action, cutOff } = reply;
    transcript.give(reply.observed ?? []);
    const tokens = transcript.sample({ ...reply, version: policy.version });

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
    for (const call of action.calls) {
      calls.push(calls.some(crashed) ? registry.skip(call, 'an earlier call crashed') : registry.call(call));
    }
    transcript.step(action, calls, tokens);
    const crash = calls.find(crashed);
    if (crash !== undefined) {
      return transcript.end('sandbox-failure', { detail: crash.observation, failure: failure ?? 'died' });
    }

    malformedInARow = action.calls.every((call) => call.arguments === null) ? malformedInARow + 1 : 0;
    if (malformedInARow >= limits.maxMalformed) {
      return transcript.end('malformed-limit', { detail: `${malformedInARow} malformed actions in a row` });
    }
    observed = format.observation(calls);
  }
  return transcript.end('max-steps', { detail: `no final answer in ${limits.maxSteps} steps` });
}

function crashed(record: CallRecord): boolean {
  return record.states.at(-1) === 'crashed';
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
