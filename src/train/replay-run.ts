/** @module `isogym replay`: a run's episodes, their recorded actions executed again in fresh worlds, compared link by link. */
import { join } from 'node:path';
import { brokenLink, type Difference, firstDifference } from '../env/replay.ts';
import type { RolloutRequest } from '../env/rollouts/rollouts.ts';
import { loadConfig } from '../io/config-file.ts';
import { readJsonl } from '../io/jsonl.ts';
import { changesSince, engineOf, type Manifest } from '../io/manifest.ts';
import { quoted, shownPath } from '../io/paths.ts';
import { RunFolder } from '../io/run-folder.ts';
import { inputError, messageOf } from '../records/errors.ts';
import { publicPart, type Task } from '../records/task.ts';
import type { Episode, Trajectory } from '../records/trajectory.ts';
import type { Config } from './config.ts';
import { environmentHashes, tasksHash } from './foundation.ts';
import type { Reporter } from './reporter.ts';
import { openStage, type Stage, startRollouts } from './rig.ts';

export interface ReplayDifference extends Difference {
  readonly episode: string;
  /** Of `trajectories.jsonl`, from 1. */
  readonly line: number;
}

export interface ReplayReport {
  readonly run: string;
  /** Episodes that the filters meant, of all. */
  readonly matching: number;
  readonly total: number;
  /** Episodes executed again. */
  readonly replayed: number;
  readonly steps: number;
  /** Not executed, but held against their own hash chains, and why. */
  readonly skipped: readonly { readonly episode: string; readonly line: number; readonly why: string }[];
  readonly differences: readonly ReplayDifference[];
  readonly interrupted: boolean;
}

export interface ReplayOptions {
  /** Absolute path of a run folder. */
  readonly run: string;
  /** A record of the log as an episode. */
  readonly read: (record: unknown) => Trajectory;
  readonly isMeant: (episode: Trajectory) => boolean;
  /** At most so many, the latest. Default: all. */
  readonly limit?: number;
  readonly signal: AbortSignal;
  readonly reporter: Reporter;
}

/** Held in memory at once. */
const BATCH = 256;

interface Line {
  readonly line: number;
  readonly episode: Trajectory;
}

/**
 * @throws REPLAY_ELSEWHERE where code, engine or platform are not those of the run; NO_EPISODES where it has recorded none; and
 * whatever is wrong with its records and config
 */
export async function replayRun(options: ReplayOptions): Promise<ReplayReport> {
  const { run, limit = Number.POSITIVE_INFINITY, signal, reporter } = options;
  const folder = RunFolder.open(run, process.cwd());
  const { config, where } = loadConfig({ file: join(run, 'config.yaml'), overrides: [], cwd: process.cwd() });
  const stage = await openStage(config, where, signal);
  await checkSame(folder.manifest(), config, stage, run);
  const { total, lines } = await meant(folder, options);
  if (total === 0) throw noEpisodes(folder, run);
  const chosen = new Set(lines.slice(-Math.min(lines.length, limit)));
  reporter.note(`replaying ${chosen.size} of ${lines.length} matching episodes (${total} in all)`);
  const tasks = new Map([...stage.tasks.train, ...stage.tasks.heldOut].map((task) => [task.id, task]));
  const report = { replayed: 0, steps: 0 };
  const skipped: ReplayReport['skipped'][number][] = [];
  const differences: ReplayDifference[] = [];

  // Fresh worlds, whatever the level of the run was: that is half of what is to be shown.
  const level = (config.environment.reset ?? stage.environment.reset) === 'isolate' ? 'isolate' : 'context';
  const rollouts = await startRollouts(config, stage, { reset: level, notice: reporter.note });
  try {
    const flush = async (batch: readonly Line[]) => {
      const again = await replayBatch(batch, tasks, (name, episodes, requests) =>
        rollouts.run(requests, { kind: 'recorded', name, episodes }, signal),
      );
      if (signal.aborted) return;
      for (const [i, { line, episode }] of batch.entries()) {
        const difference = checked(episode, () => firstDifference(episode, again[i] as Episode));
        report.replayed++;
        report.steps += episode.steps.length;
        if (difference !== undefined) differences.push({ episode: episode.id, line, ...difference });
      }
      reporter.progress({
        phase: 'replay',
        done: report.replayed + skipped.length,
        total: chosen.size,
        figures: { differences: differences.length },
      });
    };
    let batch: Line[] = [];
    for await (const { value, line } of readJsonl(folder.logPath('trajectories'), () => undefined)) {
      if (signal.aborted) break;
      if (!chosen.has(line)) continue;
      const episode = options.read(value);
      const why = unfit(episode);
      if (why !== undefined || !tasks.has(episode.taskId)) {
        if (why !== undefined) skipped.push({ episode: episode.id, line, why });
        const difference = checked(episode, () => brokenLink(episode) ?? strangeTask(episode, tasks));
        if (difference !== undefined) differences.push({ episode: episode.id, line, ...difference });
      } else if (batch.push({ line, episode }) === BATCH) {
        await flush(batch);
        batch = [];
      }
    }
    if (batch.length > 0 && !signal.aborted) await flush(batch);
  } finally {
    await rollouts.close();
  }
  const counts = { matching: lines.length, total, ...report };
  return { run: shownPath(run), ...counts, skipped, differences, interrupted: signal.aborted };
}

function checked(recorded: Episode, check: () => Difference | undefined): Difference | undefined {
  try {
    return check();
  } catch (error) {
    // A line that was changed into something that is no episode any more.
    const hash = { expected: recorded.hash, found: 'none' };
    return { step: null, what: 'record', expected: 'a whole episode', found: messageOf(error), hash, changed: true };
  }
}

/** @throws REPLAY_ELSEWHERE naming all that is not as it was when the run was made */
async function checkSame(then: Manifest, config: Config, stage: Stage, run: string): Promise<void> {
  const environment = await environmentHashes(stage.environment);
  const other = changesSince(then, { ...engineOf(config), environment, tasks: tasksHash(stage.tasks) });
  if (other.length === 0) return;
  throw inputError(
    'REPLAY_ELSEWHERE',
    `${shownPath(run)}: expected code, tasks, engine and platform of the run, found that ${other.join('; ')}`,
    'The same bytes are promised within one of each. Replay it with what it was made with.',
  );
}

/** The lines whose episodes are meant. */
async function meant(
  folder: RunFolder,
  { read, isMeant, reporter }: ReplayOptions,
): Promise<{ readonly total: number; readonly lines: readonly number[] }> {
  const lines: number[] = [];
  let total = 0;
  for await (const { value, line } of readJsonl(folder.logPath('trajectories'), reporter.note)) {
    total++;
    if (isMeant(read(value))) lines.push(line);
  }
  return { total, lines };
}

/** That nothing differs where there is nothing would say too much. */
function noEpisodes(folder: RunFolder, run: string): Error {
  const found = folder.has('trajectories.jsonl') ? 'none' : 'no such file';
  return inputError(
    'NO_EPISODES',
    `${shownPath(folder.logPath('trajectories'))}: expected the episodes of the run, found ${found}`,
    `Restore the file as the run has written it. Where the run was stopped before its first iteration ended: isogym train --resume ${quoted(shownPath(run))}`,
  );
}

/** Why an episode is not executed again. */
function unfit({ stop, failure, forkedFrom }: Episode): string | undefined {
  if (stop === 'sandbox-failure') return `it took its sandbox down (${failure})`;
  return forkedFrom === undefined ? undefined : `it is a fork of ${forkedFrom.episode}`;
}

/** Of a run whose tasks are those that it was made with, no episode has another. */
function strangeTask({ taskId, hash }: Episode, tasks: ReadonlyMap<string, Task>): Difference | undefined {
  if (tasks.has(taskId)) return undefined;
  const both = { expected: hash, found: 'none' };
  return {
    step: null,
    what: 'taskId',
    expected: JSON.stringify(taskId),
    found: 'no such task',
    hash: both,
    changed: false,
  };
}

/** The episodes again, in the order of the batch; one run of the engine for each policy's name. */
async function replayBatch(
  batch: readonly Line[],
  tasks: ReadonlyMap<string, Task>,
  roll: (
    name: string,
    episodes: readonly Episode[],
    requests: readonly RolloutRequest[],
  ) => Promise<readonly Episode[]>,
): Promise<readonly Episode[]> {
  const again = new Map<Episode, Episode>();
  for (const [name, lines] of Map.groupBy(batch, ({ episode }) => episode.policy)) {
    const episodes = lines.map(({ episode }) => episode);
    const requests = episodes.map(({ id, group, taskId, iteration, rollout, seed }) => {
      return { id, group, task: publicPart(tasks.get(taskId) as Task), iteration, rollout, seed };
    });
    for (const [i, made] of (await roll(name, episodes, requests)).entries()) again.set(episodes[i] as Episode, made);
  }
  return batch.map(({ episode }) => again.get(episode) as Episode);
}
