/** @module The transcript of one episode: append-only, and all that is known of it. Ending it gives the record. */
import type { Action } from '../records/action.ts';
import { type Beginning, endingLink, stepLink } from '../records/hash-chain.ts';
import type { StopReason } from '../records/stop-reason.ts';
import {
  type CallRecord,
  type Episode,
  type SandboxFailure,
  type Segment,
  type Step,
  TRAJECTORY_FORMAT,
} from '../records/trajectory.ts';
import { forkedFrom, type RolloutRequest } from './rollouts/rollouts.ts';

/** What a policy sampled: ids, and the behaviour policy's logprob of each or null where it has none. */
export interface Sampled {
  readonly ids: readonly number[];
  readonly logprobs: readonly number[] | null;
}

export class Transcript {
  readonly steps: Step[] = [];
  /** The token context so far. */
  readonly ids: number[] = [];
  /** Its `ids` are those above. */
  readonly #segment: Growing = { ids: this.ids, actionMask: [], logprobs: [], policyVersion: [], trainable: true };
  readonly #beginning: Beginning;
  /** The last link of the hash chain, or what stands before the first; and how many tokens it and those before it cover. */
  #link: string | Beginning;
  #covered = 0;

  /** @param policy the policy's name. */
  constructor(request: RolloutRequest, policy: string) {
    this.#beginning = beginningOf(request, policy);
    this.#link = this.#beginning;
  }

  /** Tokens that nobody sampled: mask 0, no logprob, no version. */
  give(ids: readonly number[]): void {
    for (let i = 0; i < ids.length; i++) this.#push(ids[i] as number, 0, null, null);
  }

  /** The policy's own tokens, of weights of this version: mask 1. Without logprobs the segment cannot be trained on. Returns where they stand. */
  sample({ ids, logprobs }: Sampled, version: number): Step['tokens'] {
    const start = this.ids.length;
    for (let i = 0; i < ids.length; i++) this.#push(ids[i] as number, 1, logprobs?.[i] ?? null, version);
    if (logprobs === null) this.#segment.trainable = false;
    return { segment: 0, start, end: this.ids.length };
  }

  step(action: Action, calls: readonly CallRecord[], tokens: Step['tokens']): void {
    const step = { index: this.steps.length, action, calls, tokens, hash: '' };
    step.hash = stepLink(this.#link, step, this.#segment, this.#covered);
    this.#link = step.hash;
    this.#covered = tokens.end;
    this.steps.push(step);
  }

  /** @param detail for failures and truncations: what happened, in words. */
  end(
    stop: StopReason,
    end: { readonly detail?: string; readonly final?: string; readonly failure?: SandboxFailure } = {},
  ): Episode {
    const segments = this.ids.length === 0 ? [] : [this.#segment];
    const ending = {
      stop,
      ...(end.detail === undefined ? {} : { stopDetail: end.detail }),
      ...(end.failure === undefined ? {} : { failure: end.failure }),
      final: end.final ?? null,
    };
    const hash = endingLink(this.#link, ending, segments[0], this.#covered);
    return { ...this.#beginning, steps: this.steps, segments, ...ending, hash };
  }

  #push(id: number, mask: 0 | 1, logprob: number | null, version: number | null): void {
    const { ids, actionMask, logprobs, policyVersion } = this.#segment;
    ids.push(id);
    actionMask.push(mask);
    logprobs.push(logprob);
    policyVersion.push(version);
  }
}

function beginningOf(request: RolloutRequest, policy: string): Beginning {
  const { id, group, task, iteration, rollout, seed } = request;
  const origin = forkedFrom(request);
  const { id: taskId, prompt } = task;
  const own = { format: TRAJECTORY_FORMAT, id, group, taskId, iteration, rollout, seed, policy, prompt } as const;
  return origin === undefined ? own : { ...own, forkedFrom: origin };
}

interface Growing extends Segment {
  readonly ids: number[];
  readonly actionMask: (0 | 1)[];
  readonly logprobs: (number | null)[];
  readonly policyVersion: (number | null)[];
  trainable: boolean;
}

/** The record of an episode that never began, or whose own record was lost with its worker. */
export function failedEpisode(
  request: RolloutRequest,
  policy: string,
  stop: StopReason,
  detail: string,
  failure?: SandboxFailure,
): Episode {
  return new Transcript(request, policy).end(stop, failure === undefined ? { detail } : { detail, failure });
}
