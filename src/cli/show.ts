/** @module `isogym show`: episodes of a run, for reading. */
import { Command, InvalidArgumentError } from 'commander';
import { IsogymError, inputError } from '../records/errors.ts';
import { nearest } from '../records/nearest.ts';
import { TRAJECTORY_FORMAT, type Trajectory } from '../records/trajectory.ts';
import { describeEpisode } from './episode-text.ts';
import { printJson } from './output.ts';
import { JSON_OPTION, once, someText } from './session.ts';

/** Which episodes are meant. */
export interface EpisodeFilters {
  readonly failed?: boolean;
  readonly truncated?: boolean;
  readonly task?: string;
  readonly episode?: string;
}

interface ShowFlags extends EpisodeFilters {
  readonly best?: number;
  readonly worst?: number;
  readonly limit?: number;
  readonly json?: boolean;
}

const LIMIT = 5;

export function showCommand(): Command {
  return new Command('show')
    .description('Print episodes of a run, the latest unless asked otherwise.')
    .argument('<run>', "the run's folder, or its name in runs/")
    .option('--failed', 'only those without success')
    .option('--truncated', 'only those that a limit ended')
    .option('--task <id>', 'only those of one task', once(someText))
    .option('--episode <id>', 'only the one of this id', once(someText))
    .option('--best <n>', 'the n with the highest return', once(wholeNumber))
    .option('--worst <n>', 'the n with the lowest return', once(wholeNumber))
    .option('--limit <n>', `at most n (default: ${LIMIT})`, once(wholeNumber))
    .option(...JSON_OPTION)
    .action(show);
}

export function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError(`Expected a whole number of at least 1.`);
  return Number(text);
}

async function show(run: string, flags: ShowFlags): Promise<void> {
  if ([flags.best, flags.worst, flags.limit].filter((n) => n !== undefined).length > 1) {
    throw inputError('USAGE', 'expected one of --best, --worst and --limit, found more', 'isogym show RUN --best 3');
  }
  const { RunFolder } = await import('../io/run-folder.ts');
  const { shownPath } = await import('../io/paths.ts');
  const folder = RunFolder.open(run, process.cwd());
  const selection = new Selection(flags);
  const named = new Named(flags);
  const notice = (text: string) => process.stderr.write(`${text}\n`);
  for await (const record of folder.records('trajectories', notice)) {
    const episode = trajectory(record, folder.path);
    named.see(episode);
    selection.offer(episode);
  }
  named.check();
  const { episodes, matching, total } = selection;
  if (flags.json === true) {
    printJson({ run: shownPath(folder.path), total, matching, episodes });
    return;
  }
  const count = `${episodes.length} of ${matching} matching episodes (${total} in all)`;
  process.stdout.write(`${[...episodes.map(describeEpisode), count].join('\n\n')}\n`);
}

/** What `--task` and `--episode` may name: an id that no episode has is a slip, and not an empty selection. */
export class Named {
  private readonly ids = { task: new Set<string>(), episode: new Set<string>() };
  private readonly filters: EpisodeFilters;

  constructor(filters: EpisodeFilters) {
    this.filters = filters;
  }

  /** Keeps ids where one is asked for. */
  see({ id, taskId }: Trajectory): void {
    if (this.filters.task !== undefined) this.ids.task.add(taskId);
    if (this.filters.episode !== undefined) this.ids.episode.add(id);
  }

  /** When all episodes were seen. @throws UNKNOWN_TASK, UNKNOWN_EPISODE */
  check(): void {
    const { task, episode } = this.filters;
    const { ids } = this;
    if (task !== undefined && !ids.task.has(task)) {
      throw noSuch('UNKNOWN_TASK', 'a task that the run has an episode of', task, ids.task);
    }
    if (episode !== undefined && !ids.episode.has(episode)) {
      throw noSuch('UNKNOWN_EPISODE', "the id of one of the run's episodes", episode, ids.episode);
    }
  }
}

function noSuch(code: string, expected: string, id: string, known: ReadonlySet<string>): IsogymError {
  const near = nearest(id, [...known]);
  const guess = near === undefined ? '' : ` (did you mean ${near}?)`;
  const [first] = known;
  return inputError(
    code,
    `expected ${expected}, found ${JSON.stringify(id)}${guess}`,
    first === undefined ? 'The run has no episodes yet.' : `There are ${known.size} of them, ${first} among them.`,
  );
}

/** Whether an episode passes every filter. */
export function isMeant(episode: Trajectory, { failed, truncated, task, episode: id }: EpisodeFilters): boolean {
  if (failed === true && episode.verdict.success) return false;
  if (truncated === true && !episode.truncated) return false;
  if (task !== undefined && episode.taskId !== task) return false;
  return id === undefined || episode.id === id;
}

/** A record of a log as an episode. @throws RECORD_BROKEN */
export function trajectory(record: unknown, run: string): Trajectory {
  const format = (record as { format?: unknown } | null)?.format;
  if (format !== TRAJECTORY_FORMAT) {
    throw new IsogymError(
      'RECORD_BROKEN',
      `${run}/trajectories.jsonl: expected records of format ${TRAJECTORY_FORMAT}, found ${JSON.stringify(format) ?? 'none'}`,
      { hint: 'The run was made by another version of isogym: read it with that one.' },
    );
  }
  const { id, taskId, prompt, steps, verdict } = record as Partial<Trajectory>;
  const texts = [id, taskId, prompt].every((text) => typeof text === 'string');
  if (!texts || !Array.isArray(steps) || !Array.isArray(verdict?.reasons)) {
    throw new IsogymError(
      'RECORD_BROKEN',
      `${run}/trajectories.jsonl: expected whole episodes, found one that lacks some of id, taskId, prompt, steps and verdict`,
      { hint: 'The file was changed by something other than isogym. Take the line out, or restore the file.' },
    );
  }
  return record as Trajectory;
}

/** Holds no more episodes than it will show, however long the run. */
class Selection {
  /** In the order in which they are shown. */
  readonly episodes: Trajectory[] = [];
  matching = 0;
  total = 0;
  private readonly flags: ShowFlags;

  constructor(flags: ShowFlags) {
    this.flags = flags;
  }

  offer(episode: Trajectory): void {
    this.total += 1;
    const { best, worst, limit = LIMIT } = this.flags;
    if (!isMeant(episode, this.flags)) return;
    const ranked = best ?? worst;
    if (ranked !== undefined && episode.return === null) return;
    this.matching += 1;
    this.episodes.push(episode);
    if (ranked !== undefined) {
      const sign = best === undefined ? 1 : -1;
      this.episodes.sort((a, b) => sign * ((a.return ?? 0) - (b.return ?? 0)));
      this.episodes.length = Math.min(this.episodes.length, ranked);
    } else if (this.episodes.length > limit) {
      this.episodes.shift();
    }
  }
}
