/** @module Every way in which an episode can end, and what follows from it. This table is the only place that decides. */

/**
 * - `usable`: whether the episode enters the baseline, the loss and the denominator (all three, or none).
 * - `scored`: whether a verifier judges it. A truncated episode's score is never positive, see `src/train/returns.ts`.
 * - `ends`: `terminated` by the policy's own final action, `truncated` by a bound, or `failed` by the infrastructure.
 * - `outside`: ended from outside: what it did can be done again from its record, its end cannot.
 * - `boundary`: for failures, the boundary that was crossed.
 */
export interface StopRule {
  readonly ends: 'terminated' | 'truncated' | 'failed';
  readonly usable: boolean;
  readonly scored: boolean;
  readonly outside?: true;
  readonly boundary?: 'policy' | 'tool' | 'environment' | 'verifier' | 'sandbox';
  readonly meaning: string;
}

export const STOP_RULES = {
  final: { ends: 'terminated', usable: true, scored: true, meaning: 'The policy gave its final answer.' },
  'max-steps': {
    ends: 'truncated',
    usable: true,
    scored: true,
    meaning: 'The step limit was reached without a final answer.',
  },
  'max-tokens': {
    ends: 'truncated',
    usable: true,
    scored: true,
    meaning: 'An action was cut off by the token limit, or the context is full; the cut-off action was not executed.',
  },
  'malformed-limit': {
    ends: 'truncated',
    usable: true,
    scored: true,
    meaning: 'Too many malformed actions in a row.',
  },
  deadline: {
    ends: 'truncated',
    usable: true,
    scored: true,
    outside: true,
    meaning: 'It was live for as many ticks of the batch as `rollouts.deadline` allows.',
  },
  late: {
    ends: 'truncated',
    usable: false,
    scored: false,
    outside: true,
    meaning: 'The deadline by the clock passed (throughput mode): says nothing about the policy.',
  },
  straggler: {
    ends: 'truncated',
    usable: false,
    scored: false,
    outside: true,
    meaning: 'Enough of its group had finished before it (`rollouts.extra`).',
  },
  suspended: {
    ends: 'truncated',
    usable: false,
    scored: false,
    outside: true,
    meaning:
      'The iteration was over before it (`rollouts.budget`): it goes on in a later one, and only what comes of it then is recorded.',
  },
  cancelled: { ends: 'failed', usable: false, scored: false, outside: true, meaning: 'The run was interrupted.' },
  'policy-failure': {
    ends: 'failed',
    usable: false,
    scored: false,
    boundary: 'policy',
    meaning: 'The policy threw or could not be reached.',
  },
  'environment-failure': {
    ends: 'failed',
    usable: false,
    scored: false,
    boundary: 'environment',
    meaning: "The environment's own code threw outside a tool.",
  },
  'sandbox-failure': {
    ends: 'failed',
    usable: false,
    scored: false,
    boundary: 'sandbox',
    meaning: 'The isolate or its worker died: out of memory, disposed, or killed.',
  },
} as const satisfies Record<string, StopRule>;

/** How the detail begins of an episode that stopped with `max-tokens` in the midst of an action. */
export const CUT_OFF = 'an action was cut off';

export type StopReason = keyof typeof STOP_RULES;

export function stopRule(reason: StopReason): StopRule {
  return STOP_RULES[reason];
}
