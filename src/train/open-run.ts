/** @module What a run starts from: a new folder with fresh weights, or the folder and the latest checkpoint of one that was stopped. */
import { join } from 'node:path';
import { memoryBytes } from '../io/machine.ts';
import { changesSince, configHash, createManifest, type Manifest } from '../io/manifest.ts';
import { quoted, shownPath } from '../io/paths.ts';
import { RunFolder } from '../io/run-folder.ts';
import type { Backend, BackendName } from '../policy/backends/select.ts';
import { inputError } from '../records/errors.ts';
import { deriveSeed, generator } from '../records/random.ts';
import { type Acting, decodeCheckpoint, type Position } from './checkpoint.ts';
import type { Config } from './config.ts';
import { environmentHashes, tasksHash, verifierHashes } from './foundation.ts';
import type { Carried } from './groups.ts';
import { type Learner, learnerFor } from './learner.ts';
import { checkMemory } from './memory.ts';
import { type Reporter, SILENT } from './reporter.ts';
import type { OpenRig, Where } from './rig.ts';
import { checkScripts } from './warm-start.ts';

export interface OpenOptions {
  /** As `loadConfig` gives it. */
  readonly config: Config & { readonly name: string };
  /** Where a value of the config was written: for errors. */
  readonly where?: Where;
  /** What was typed, for the manifest. Default: `train()`. */
  readonly command?: string;
  /** Default: silent. */
  readonly reporter?: Reporter;
  /** Absolute path of the run to go on with; `config` is then that run's own. */
  readonly resume?: string;
}

export interface OpenedRun {
  readonly folder: RunFolder;
  /** The caller's to dispose. */
  readonly learner: Learner;
  readonly position: Position;
  /** What was carried over from the iterations before. */
  readonly carried?: Carried | undefined;
  /** Whose weights roll out the next iteration; absent where they are the learner's. */
  readonly acting?: Acting | undefined;
}

/** @throws UNKNOWN_SCRIPT, RUN_FOLDER; where a run is gone on with, what is wrong with its records, and RESUME_ITERATIONS, RUN_FINISHED, TASKS_CHANGED */
export async function openRun(options: OpenOptions, { name, device }: Backend, rig: OpenRig): Promise<OpenedRun> {
  const { config, resume, command = 'train()', where } = options;
  if (config.warmStart !== undefined) checkScripts(config.warmStart, Object.keys(rig.environment.scripts), where);
  const environment = await environmentHashes(rig.environment);
  const verifier = await verifierHashes(rig.verifier);
  if (resume === undefined) checkMemory(rig.agent.parameters, name, memoryBytes(), where);
  const manifest = createManifest({
    ...{ config, command, backend: name, device },
    ...{ environment, verifier, tasks: tasksHash(rig.tasks) },
  });
  const apart = config.rollouts.staleness > 0 ? name : undefined;
  return resume === undefined ? begin(options, rig, manifest, apart) : goOn(options, rig, manifest, resume, apart);
}

function begin(
  { config, reporter = SILENT }: OpenOptions,
  rig: OpenRig,
  manifest: Manifest,
  apart: BackendName | undefined,
): OpenedRun {
  const folder = RunFolder.create({ dir: config.runs.dir, name: config.name, config, manifest });
  reporter.note(`run ${shownPath(folder.path)}`);
  noteMode(config, reporter);
  const weights = rig.agent.model.init(generator(deriveSeed(String(config.seed), 'init')));
  const learner = learnerFor(rig.agent, config, { weights }, apart);
  return { folder, learner, position: { phase: config.warmStart === undefined ? 'train' : 'warm-start', step: 0 } };
}

async function goOn(
  options: OpenOptions,
  rig: OpenRig,
  manifest: Manifest,
  path: string,
  apart: BackendName | undefined,
): Promise<OpenedRun> {
  const { config, reporter = SILENT } = options;
  const folder = RunFolder.open(path, process.cwd());
  const { snapshot, resetLost, ...at } = decodeCheckpoint(
    folder.latestCheckpoint(),
    configHash(config),
    rig.agent.files,
  );
  const { position } = at;
  if (resetLost) rig.rollouts.resetLost = true;
  checkIterations(config, position, folder);
  const then = folder.manifest();
  checkTasks(then, manifest, folder);
  const last = await folder.truncate((record) => isAfter(record, position));
  folder.dropEvaluationsAfter(position.phase === 'train' ? position.step : 0);
  folder.writeConfig(config);
  reporter.note(`run ${shownPath(folder.path)}, resumed at ${position.phase} ${position.step}`);
  noteMode(config, reporter);
  for (const change of changesSince(then, manifest)) {
    reporter.note(`not to the bytes that it would have come to: ${change}`);
  }
  for (const log of ['metrics', 'trajectories'] as const) {
    if (!reaches(last[log], log, position)) {
      reporter.note(`${shownPath(folder.logPath(log))} lacks records from before this: it was cut short or taken away`);
    }
  }
  return { folder, learner: learnerFor(rig.agent, config, snapshot, apart, position.phase), ...at };
}

function noteMode({ rollouts }: Config, reporter: Reporter): void {
  if (rollouts.staleness > 0) {
    reporter.note(
      'rollouts.staleness 1: the learner works in a process of its own, and each iteration rolls out while the one before is learnt from',
    );
  }
  if (rollouts.mode === 'throughput') {
    reporter.note(
      'rollouts.mode throughput: who is faster decides who joins a batch, so the same seed gives other bytes',
    );
  }
}

/** Whether there is anything to go on for. @throws RESUME_ITERATIONS, RUN_FINISHED */
function checkIterations({ iterations, optimizer }: Config, { phase, step }: Position, folder: RunFolder): void {
  if (phase !== 'train') return;
  const command = `isogym train --resume ${quoted(shownPath(folder.path))}`;
  const begin = beginning(folder);
  const more = Math.max(1, 2 * step);
  if (step > iterations) {
    throw inputError(
      'RESUME_ITERATIONS',
      `expected iterations of at least ${step}, which the run has done already, found ${iterations}`,
      `${command} iterations=${step}`,
    );
  }
  if (step === iterations && folder.has('summary.json')) {
    throw inputError(
      'RUN_FINISHED',
      `expected a run that was stopped, found one that has come to its end: ${step} iterations`,
      // With decay every step depends on how many there will be: the same run cannot go on for longer.
      optimizer.decay > 0
        ? `With optimizer.decay no run goes on for longer. Begin a new one: ${begin} iterations=${more}`
        : `To go on for longer: ${command} iterations=${more}`,
    );
  }
}

/** What was evaluated before is kept and compared task by task with what comes. @throws TASKS_CHANGED */
function checkTasks(then: Manifest, now: Manifest, folder: RunFolder): void {
  if (then.tasks === now.tasks) return;
  throw inputError(
    'TASKS_CHANGED',
    `${shownPath(folder.path)}: expected the tasks that the run began with, found others: task() of the environment has changed`,
    `Restore it, or begin a new run: ${beginning(folder)}`,
  );
}

/** The command for a new run of the same config. */
function beginning(folder: RunFolder): string {
  return `isogym train --config ${quoted(shownPath(join(folder.path, 'config.yaml')))}`;
}

/** Whether the last record of a log is what was written right before a position. */
function reaches(last: unknown, log: 'metrics' | 'trajectories', { phase, step }: Position): boolean {
  if (step === 0 || (phase === 'warm-start' && log === 'trajectories')) return true;
  const record = (last ?? {}) as Written;
  return (phase === 'warm-start' ? record.step : writtenIn(record)) === step - 1;
}

/** A line of metrics or trajectories. */
interface Written {
  readonly phase?: string;
  readonly iteration?: number;
  readonly learntIn?: number;
  readonly step?: number;
}

function writtenIn({ iteration, learntIn }: Written): number | undefined {
  return learntIn ?? iteration;
}

/** Whether a record was written for what comes after a position. */
function isAfter(record: unknown, { phase, step }: Position): boolean {
  const of = record as Written;
  if (of.phase === 'warm-start') return phase === 'warm-start' && (of.step ?? 0) >= step;
  return phase === 'warm-start' || (writtenIn(of) ?? 0) >= step;
}
