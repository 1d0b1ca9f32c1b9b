/** @module A run on disk: made once, never overwritten, readable while it grows. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { stringify } from 'yaml';
import { IsogymError, inputError, messageOf } from '../records/errors.ts';
import { nearest } from '../records/nearest.ts';
import type { Config } from '../train/config.ts';
import { type Checkpoint, checkpointsIn, saveCheckpoint } from './checkpoint-files.ts';
import { makeFolders, syncFolder, writeDurably } from './durable.ts';
import { JsonlWriter, readJsonl } from './jsonl.ts';
import { type Manifest, parseManifest } from './manifest.ts';
import { quoted, shownPath } from './paths.ts';

/** The files of one record a line. */
export const LOGS = ['metrics', 'trajectories', 'timings'] as const;
export type Log = (typeof LOGS)[number];

export class RunFolder {
  /** Absolute. */
  readonly path: string;
  readonly name: string;
  private readonly writers = new Map<Log, JsonlWriter>();

  private constructor(path: string) {
    this.path = path;
    this.name = basename(path);
  }

  /**
   * Makes `dir/name`, or the first of `dir/name-2`, `dir/name-3`, … that does not exist, and writes config and manifest into it.
   * The making itself decides, so two runs begun at once never share a folder.
   */
  static create(options: {
    readonly dir: string;
    readonly name: string;
    readonly config: Config;
    readonly manifest: Manifest;
  }): RunFolder {
    const refuse = (path: string, error: unknown) =>
      new IsogymError('RUN_FOLDER', `cannot make the run folder ${path}: ${messageOf(error)}`, {
        cause: error,
        hint: 'Name a folder that can be made and written to: runs.dir=…',
      });
    try {
      makeFolders(resolve(options.dir));
    } catch (error) {
      throw refuse(resolve(options.dir, options.name), error);
    }
    for (let number = 1; ; number++) {
      const name = number === 1 ? options.name : `${options.name}-${number}`;
      const path = resolve(options.dir, name);
      try {
        mkdirSync(path);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EEXIST') continue;
        throw refuse(path, error);
      }
      const run = new RunFolder(path);
      try {
        writeDurably(join(path, 'manifest.json'), `${JSON.stringify(options.manifest, null, 2)}\n`);
      } catch (error) {
        throw refuse(path, error);
      }
      run.writeConfig(options.config);
      return run;
    }
  }

  /**
   * Opens a run by its path, or by its name in `runs/` under `cwd`.
   * @throws RUN_NOT_FOUND, RUN_BROKEN where its manifest is not one, or of a format that this version does not read
   */
  static open(run: string, cwd: string): RunFolder {
    const candidates = [resolve(cwd, run), resolve(cwd, 'runs', run)];
    const path = candidates.find((candidate) => existsSync(join(candidate, 'manifest.json')));
    if (path === undefined) {
      const [given = run] = candidates;
      if (existsSync(given) && !statSync(given).isDirectory()) {
        throw inputError(
          'RUN_NOT_FOUND',
          `expected the folder of a run, found the file ${run}`,
          `A run is named by its folder, as in \`isogym show ${quoted(shownPath(dirname(given)))}\`.`,
        );
      }
      const home = resolve(cwd, 'runs');
      const near = nearest(basename(run), existsSync(home) ? readdirSync(home) : []);
      const guess = near === undefined ? '' : ` (did you mean ${near}?)`;
      throw inputError(
        'RUN_NOT_FOUND',
        `expected the folder of a run, found no manifest.json in ${run}${guess}`,
        'A run is named by its folder, as in `isogym show runs/toy-lookup`.',
      );
    }
    const folder = new RunFolder(path);
    folder.manifest();
    return folder;
  }

  /** The resolved config under this run's own name: `isogym train --config RUN/config.yaml` runs it again. */
  writeConfig(config: Config): void {
    this.write('config.yaml', stringify({ ...config, name: this.name }));
  }

  /** @throws RUN_BROKEN */
  manifest(): Manifest {
    const file = join(this.path, 'manifest.json');
    try {
      return parseManifest(readFileSync(file, 'utf8'));
    } catch (error) {
      throw new IsogymError('RUN_BROKEN', `${file}: expected the manifest of a run: ${messageOf(error)}`, {
        cause: error,
        hint: 'Restore the file: nothing else says what the run was.',
      });
    }
  }

  /** Appends one record to a log, as one write. */
  append(log: Log, record: unknown): void {
    this.writing(this.logPath(log), () => {
      let writer = this.writers.get(log);
      if (writer === undefined) {
        writer = new JsonlWriter(this.logPath(log));
        this.writers.set(log, writer);
      }
      writer.append(record);
    });
  }

  logPath(log: Log): string {
    return join(this.path, `${log}.jsonl`);
  }

  /** The records of a log, in order; see `readJsonl` for what a torn or broken line does. */
  async *records(log: Log, onNotice: (notice: string) => void): AsyncGenerator<unknown> {
    for await (const { value } of readJsonl(this.logPath(log), onNotice)) yield value;
  }

  /**
   * Cuts every log but `timings` at its first record that `isAfter` says was written after a checkpoint, so that resuming writes each record once.
   * @returns the last record that each of them still has
   */
  async truncate(isAfter: (record: unknown) => boolean): Promise<Readonly<Partial<Record<Log, unknown>>>> {
    this.close();
    const last: Partial<Record<Log, unknown>> = {};
    for (const log of LOGS) {
      if (log === 'timings') continue;
      for await (const { value, line, start } of readJsonl(this.logPath(log), () => undefined)) {
        if (typeof value !== 'object' || value === null) throw notARecord(`${this.logPath(log)}:${line}`, value);
        if (!isAfter(value)) {
          last[log] = value;
          continue;
        }
        this.writing(this.logPath(log), () => truncateSync(this.logPath(log), start));
        break;
      }
    }
    return last;
  }

  /** Takes away the evaluations along the way (`evaluations/iteration-N.*`) with N above `iterations`: of weights that are learnt again. */
  dropEvaluationsAfter(iterations: number): void {
    const folder = join(this.path, 'evaluations');
    for (const name of existsSync(folder) ? readdirSync(folder) : []) {
      const [, iteration] = /^iteration-(\d+)\./.exec(name) ?? [];
      if (Number(iteration) > iterations) this.writing(folder, () => rmSync(join(folder, name)));
    }
  }

  has(file: string): boolean {
    return existsSync(join(this.path, file));
  }

  /** Writes a file of one record a line, whole or not at all. */
  writeRecords(file: string, records: readonly unknown[]): void {
    this.write(file, records.map((record) => `${JSON.stringify(record)}\n`).join(''));
  }

  /** Writes a file of the run, whole or not at all. */
  write(file: string, content: string | Uint8Array): void {
    const path = join(this.path, file);
    this.writing(path, () => {
      if (existsSync(this.path)) makeFolders(dirname(path));
      writeDurably(`${path}.tmp`, content);
      renameSync(`${path}.tmp`, path);
      syncFolder(dirname(path));
    });
  }

  /** What cannot be written is told with its path, and what there is to go on with. */
  private writing<T>(path: string, work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (!existsSync(join(this.path, 'manifest.json'))) {
        throw new IsogymError(
          'RUN_GONE',
          `expected the run folder ${this.path}, found that it was moved or removed while the run went on`,
          { cause: error, hint: 'Where it was moved, go on with it there: isogym train --resume PATH' },
        );
      }
      throw new IsogymError('RUN_WRITE', `cannot write ${path}: ${messageOf(error)}`, {
        cause: error,
        hint: `The latest checkpoint is whole. Once it can be written to: isogym train --resume ${quoted(shownPath(this.path))}`,
      });
    }
  }

  /** See `saveCheckpoint` in checkpoint-files.ts. The records from before it are on the disk first. */
  saveCheckpoint(iteration: number, files: Readonly<Record<string, string | Uint8Array>>, keep: number): Checkpoint {
    const folder = this.checkpointFolder;
    return this.writing(folder, () => {
      if (existsSync(this.path)) makeFolders(folder);
      for (const writer of this.writers.values()) writer.sync();
      return saveCheckpoint(folder, iteration, files, keep);
    });
  }

  /** Oldest first. */
  checkpoints(): readonly Checkpoint[] {
    return checkpointsIn(this.checkpointFolder);
  }

  /** @throws NO_CHECKPOINT */
  latestCheckpoint(): Checkpoint {
    const latest = this.checkpoints().at(-1);
    if (latest === undefined) {
      throw new IsogymError('NO_CHECKPOINT', `${this.path}: expected a checkpoint, found none`, {
        exitCode: 2,
        hint: `Begin it anew: isogym train --config ${quoted(shownPath(join(this.path, 'config.yaml')))}`,
      });
    }
    return latest;
  }

  private get checkpointFolder(): string {
    return join(this.path, 'checkpoints');
  }

  close(): void {
    for (const writer of this.writers.values()) writer.close();
    this.writers.clear();
  }
}

function notARecord(where: string, value: unknown): Error {
  return new IsogymError('RECORD_BROKEN', `${where}: expected a record, found ${JSON.stringify(value)}`, {
    hint: 'The file was changed by something other than isogym. Take the line out, or restore the file.',
  });
}
