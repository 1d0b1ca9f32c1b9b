/** @module A run: trains as a config says and leaves a run folder. The shell around `loop.ts`: here are disk, clock and progress. What it starts from is `open-run.ts`. */
import { now, stopwatch } from '../io/clock.ts';
import { configHash } from '../io/manifest.ts';
import { quoted, shownPath } from '../io/paths.ts';
import { RunFolder } from '../io/run-folder.ts';
import { lockRun } from '../io/run-lock.ts';
import { HANDLE_LIMIT, handlesUsed, renewHandles } from '../policy/backends/handles.ts';
import { type Backend, describeBackend, selectBackend } from '../policy/backends/select.ts';
import { IsogymError, messageOf } from '../records/errors.ts';
import type { Trajectory } from '../records/trajectory.ts';
import { type Acting, divergence, encodeCheckpoint, type Position } from './checkpoint.ts';
import type { Config } from './config.ts';
import { heldOutNote, progressFigures, timingsOf } from './figures.ts';
import { type Carried, NOTHING_CARRIED } from './groups.ts';
import { HeldOut } from './held-out.ts';
import type { Learner } from './learner.ts';
import { type Iteration, reinforce } from './loop.ts';
import { type OpenedRun, type OpenOptions, openRun } from './open-run.ts';
import { probe } from './probe.ts';
import { type Reporter, SILENT } from './reporter.ts';
import { type OpenRig, openRig } from './rig.ts';
import { type Example, type Interruption, type Summary, summarize } from './summary.ts';
import { demonstrate, warmStart } from './warm-start.ts';

export interface TrainOptions extends OpenOptions {
  /** Aborting writes a checkpoint and ends the run. */
  readonly signal?: AbortSignal;
  /** After so many of TensorFlow's tensor handles its addon is loaded anew. Default: half of all there are, 2³⁰. */
  readonly handleLimit?: number;
}

export type TrainOutcome =
  | { readonly interrupted: false; readonly summary: Summary; readonly example: Example }
  | { readonly interrupted: true; readonly summary: Interruption };

/** Trains as the config says, from the start or from where `resume` was stopped. @throws whatever is wrong with config, modules, backend or records */
export async function train(options: TrainOptions): Promise<TrainOutcome> {
  const watch = stopwatch();
  const { resume } = options;
  if (resume === undefined) return work(options, watch);
  const lock = await lockRun(RunFolder.open(resume, process.cwd()).path);
  try {
    return await work(options, watch);
  } finally {
    lock.release();
  }
}

async function work(options: TrainOptions, watch: { seconds(): number }): Promise<TrainOutcome> {
  const { config, reporter = SILENT, signal } = options;
  const backend = await selectBackend(config.backend);
  reporter.note(describeBackend(backend));
  signal?.throwIfAborted();
  const rig = await openRig(config, { where: options.where, notice: reporter.note, signal });
  try {
    // As long as nothing is written there is nothing to keep.
    signal?.throwIfAborted();
    const opened = await openRun(options, backend, rig);
    const run = new Run(options, rig, opened);
    let lock: Awaited<ReturnType<typeof lockRun>> | undefined;
    try {
      if (options.resume === undefined) lock = await lockRun(opened.folder.path);
      if (options.resume === undefined) await run.begin();
      return await run.train(backend, watch);
    } finally {
      run.close();
      lock?.release();
    }
  } finally {
    await rig.close();
  }
}

class Run {
  readonly #config: TrainOptions['config'];
  readonly #signal: AbortSignal;
  readonly #reporter: Reporter;
  readonly #rig: OpenRig;
  readonly #folder: RunFolder;
  readonly #learner: Learner;
  readonly #heldOut: HeldOut;
  readonly #handleLimit: number;
  #position: Position;
  #carried: Carried | undefined;
  #acting: Acting | undefined;

  constructor(options: TrainOptions, rig: OpenRig, { folder, learner, position, carried, acting }: OpenedRun) {
    this.#config = options.config;
    this.#signal = options.signal ?? new AbortController().signal;
    this.#reporter = options.reporter ?? SILENT;
    this.#rig = rig;
    this.#folder = folder;
    this.#learner = learner;
    this.#heldOut = new HeldOut(folder, rig, learner, options.config);
    this.#handleLimit = options.handleLimit ?? HANDLE_LIMIT;
    this.#position = position;
    this.#carried = carried;
    this.#acting = acting;
  }

  /** The first checkpoint, before anything was learnt. */
  async begin(): Promise<void> {
    if (this.#position.phase === 'train') await this.#learner.beginReinforcement();
    await this.#checkpoint();
  }

  close(): void {
    this.#folder.close();
    this.#learner.dispose();
  }

  async train(backend: Backend, watch: { seconds(): number }): Promise<TrainOutcome> {
    const config = this.#config;
    const signal = this.#signal;
    try {
      await probe(this.#rig, this.#rig.tasks.train, String(config.seed), signal);
      const random = await this.#heldOut.evaluate('random', signal);
      // Before anything is learnt: a task set that its own oracle cannot be judged on is not worth the hours.
      const oracle = 'oracle' in this.#rig.environment.scripts ? [await this.#heldOut.evaluate('oracle', signal)] : [];
      const untrained = await this.#heldOut.evaluate('untrained', signal);
      let before = untrained;
      if (config.warmStart !== undefined) {
        await this.#warmStart(config.warmStart);
        before = await this.#heldOut.evaluate('warm-start', signal);
      }
      await this.#reinforce();
      const trained = await this.#heldOut.evaluate('trained', signal);
      const summary = summarize({
        run: shownPath(this.#folder.path),
        backend,
        config: this.#config,
        evaluated: [random, ...new Set([untrained, before]), trained, ...oracle],
        before,
        trained,
        wallSeconds: watch.seconds(),
      });
      this.#folder.write('summary.json', `${JSON.stringify(summary, null, 2)}\n`);
      return { interrupted: false, summary, example: this.#heldOut.example(before.name) };
    } catch (error) {
      // Whatever else ends it may have left it between two places from which it can be gone on with.
      if (!signal.aborted || error !== signal.reason) throw error;
      return this.#interrupted();
    }
  }

  /** Supervised steps from where the run stands; nothing where they are done. */
  async #warmStart(config: NonNullable<Config['warmStart']>): Promise<void> {
    if (this.#position.phase !== 'warm-start') return;
    const { agent, tasks } = this.#rig;
    const seed = String(this.#config.seed);
    const signal = this.#signal;
    const { note } = this.#reporter;
    const demonstrations = await demonstrate(config, this.#rig, tasks.train, seed, { signal, note });
    const learner = this.#learner;
    const from = this.#position.step;
    await warmStart({
      config,
      agent,
      learner,
      demonstrations,
      seed,
      from,
      signal,
      commit: async (step, update) => {
        this.#folder.append('metrics', { phase: 'warm-start', step, update });
        this.#position = { phase: 'warm-start', step: step + 1 };
        const [{ loss, entropy } = { loss: Number.NaN, entropy: Number.NaN }] = update.steps;
        const progress = { phase: 'warm-start', done: step + 1, total: config.steps, figures: { loss, entropy } };
        this.#reporter.progress(progress);
        await this.#renewHandles();
      },
    });
    await learner.beginReinforcement();
    this.#position = { phase: 'train', step: 0 };
    await this.#checkpoint();
  }

  async #reinforce(): Promise<void> {
    // A run that was stopped in the evaluation after its last iteration still owes it.
    await this.#evaluateAlong(this.#position.step);
    await reinforce({
      config: this.#config,
      rig: this.#rig,
      agent: this.#rig.agent,
      learner: this.#learner,
      tasks: this.#rig.tasks.train,
      from: this.#position.step,
      ...(this.#carried === undefined ? {} : { carried: this.#carried }),
      ...(this.#acting === undefined ? {} : { acting: this.#acting }),
      now,
      signal: this.#signal,
      commit: (iteration) => this.#commit(iteration),
      failed: (trajectories) => this.#keepFailure(trajectories),
    });
    const { suspended, ended } = this.#carried ?? NOTHING_CARRIED;
    const left = suspended.length + ended.length;
    if (left > 0) {
      this.#reporter.note(
        `${left} rollouts of unfinished groups were not learnt from: they are in the last checkpoint`,
      );
    }
  }

  async #commit(made: Iteration): Promise<void> {
    const { iteration, trajectories, carried, acting, metrics } = made;
    const { iterations, checkpoint } = this.#config;
    for (const trajectory of trajectories) this.#folder.append('trajectories', trajectory);
    this.#folder.append('metrics', metrics);
    const timings = timingsOf(made);
    this.#folder.append('timings', {
      iteration,
      ...timings,
      recordings: this.#learner.recordings + this.#rig.agent.recordings(),
      decodePaddingShare: this.#rig.agent.decodePaddingShare(),
      tensorHandles: this.#handlesUsed(),
    });
    const done = iteration + 1;
    this.#position = { phase: 'train', step: done };
    this.#acting = acting;
    if (this.#config.rollouts.budget !== undefined) this.#carried = carried;
    const figures = progressFigures(metrics, timings);
    this.#reporter.progress({ phase: 'train', done, total: iterations, figures });
    if (done % checkpoint.every === 0 || done === iterations) await this.#checkpoint();
    await this.#evaluateAlong(done);
    await this.#renewHandles();
  }

  /** Before TensorFlow's handles come to their end: a checkpoint, and what lives in the backend begins anew. */
  async #renewHandles(): Promise<void> {
    const used = this.#handlesUsed();
    if (used === null || used < this.#handleLimit) return;
    await this.#checkpoint();
    this.#rig.agent.close();
    await this.#learner.through(renewHandles);
    this.#reporter.note(`${used} tensor handles used: a checkpoint is written, TensorFlow's addon loaded anew`);
  }

  /** Here, or where the learner works: whichever is nearer to the end of them. */
  #handlesUsed(): number | null {
    const [here, there] = [handlesUsed(), this.#learner.tensorHandles];
    return here === null || there === null ? (here ?? there) : Math.max(here, there);
  }

  /** Where the config wants an evaluation after so many iterations. */
  async #evaluateAlong(done: number): Promise<void> {
    const { every } = this.#config.evaluation;
    if (every === 0 || done === 0 || done % every !== 0) return;
    const { row } = await this.#heldOut.evaluate('trained', this.#signal, `iteration-${done}`);
    this.#reporter.note(heldOutNote(done, row));
  }

  /** A batch that could not be learnt from, beside the weights before it: what it takes to see the failure again. */
  async #keepFailure(trajectories: readonly Trajectory[]): Promise<void> {
    const path = shownPath(this.#folder.path);
    const { note } = this.#reporter;
    // What failed first is told by who called this.
    try {
      this.#folder.writeRecords('failed-batch.jsonl', trajectories);
    } catch (error) {
      note(`The iteration failed, and what it failed on could not be kept: ${messageOf(error)}`);
      return;
    }
    const kept = `The iteration failed. Its batch is kept in ${path}/failed-batch.jsonl, the weights before it`;
    try {
      await this.#checkpoint();
    } catch (error) {
      note(`${kept} could not be: ${messageOf(error)}`);
      return;
    }
    note(`${kept} in the latest checkpoint.`);
  }

  async #checkpoint(): Promise<void> {
    const { phase, step } = this.#position;
    const snapshot = await this.#learner.snapshot();
    const diverged = divergence(snapshot.weights, snapshot.m, snapshot.v);
    if (diverged !== null) {
      throw new IsogymError('WEIGHTS_DIVERGED', `after ${phase} ${step}: expected finite weights, found ${diverged}`, {
        hint: 'Lower the learning rate and begin anew. The checkpoint before is kept as it was.',
      });
    }
    const files = encodeCheckpoint(snapshot, this.#position, configHash(this.#config), this.#rig.agent.files, {
      carried: this.#carried,
      acting: this.#acting,
      resetLost: this.#rig.rollouts.resetLost,
    });
    this.#folder.saveCheckpoint(phase === 'train' ? step : 0, files, this.#config.checkpoint.keep);
  }

  async #interrupted(): Promise<TrainOutcome> {
    await this.#checkpoint();
    const run = shownPath(this.#folder.path);
    const resume = `isogym train --resume ${quoted(run)}`;
    this.#reporter.note(`Interrupted; a checkpoint is written. To go on: ${resume}`);
    const { phase, step } = this.#position;
    const iterations = phase === 'train' ? step : 0;
    return { interrupted: true, summary: { run, interrupted: true, iterations, resume } };
  }
}
