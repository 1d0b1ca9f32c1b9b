/** @module One episode as text for people. Also used for the before and after at the end of a run. */
import type { CallRecord, Step, Trajectory } from '../records/trajectory.ts';

/** A few lines without a trailing newline; whatever a policy or a tool wrote is shown on one line, its control characters escaped. */
export function describeEpisode(episode: Trajectory): string {
  const { verdict } = episode;
  const outcome = [
    `stop ${episode.stop}`,
    `score ${verdict.score ?? 'none'}`,
    `return ${episode.return === null ? 'none' : Number(episode.return.toFixed(6))}`,
    ...(episode.usable ? [] : ['not usable']),
  ];
  const rows = [
    ['prompt', visible(episode.prompt)],
    ...episode.steps.flatMap(stepRows),
    ...(episode.stopDetail === undefined ? [] : [['stopped', visible(episode.stopDetail)]]),
    ...verdict.reasons.map((reason) => ['verdict', visible(reason)]),
  ];
  return [
    `${episode.id}  task ${episode.taskId}  ${outcome.join('  ')}`,
    ...rows.map(([label = '', text = '']) => `  ${label.padEnd(8)}  ${text}`),
  ].join('\n');
}

function stepRows(step: Step): readonly (readonly [string, string])[] {
  return [
    [`step ${step.index + 1}`, visible(step.action.text)] as const,
    ...step.calls.map((call) => ['', `→ ${visible(call.observation)}${ending(call)}`] as const),
  ];
}

function ending(call: CallRecord): string {
  return call.error === undefined ? '' : `  [${call.error}]`;
}

/** A text that cannot move the cursor or break the line: control characters and the line separators as escapes. */
export function visible(text: string): string {
  return (
    text
      .toWellFormed()
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
      .replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, (c) =>
        c === '\n' ? '\\n' : `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
      )
  );
}
