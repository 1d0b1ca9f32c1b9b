/** @module A run: opens what a config names, trains, and leaves a run folder. The shell around `loop.ts`: here are disk, clock and progress. */
import { bundle } from '../env/sandbox/bundle.ts';
import { now, stopwatch } from '../io/clock.ts';
import { changesSince, configHash, createManifest, hashText, type Manifest } from '../io/manifest.ts';
import { shownPath } from '../io/paths.ts';
import { RunFolder } from '../io/run-folder.ts';
import { lockRun } from '../io/run-lock.ts';
import { type Backend, describeBackend, selectBackend } from '../policy/backends/select.ts';
import { IsogymError, inputError } from '../records/errors.ts';
import { deriveSeed, generator } from '../records/random.ts';
import type { Trajectory } from '../records/trajectory.ts';
import { decodeCheckpoint, divergence, encodeCheckpoint, type Position } from './checkpoint.ts';
import type { Config } from './config.ts';
import { pairedGain } from './evaluate.ts';
import { type Evaluated, HeldOut } from './held-out.ts';
import { type Learner, learnerFor } from './learner.ts';
import { type Iteration, reinforce } from './loop.ts';
import { type Reporter, SILENT } from './reporter.ts';
import { type OpenRig, openRig, type Where } from './rig.ts';
import type { Example, Interruption, Summary } from './summary.ts';
import { checkScripts, demonstrate, warmStart } from './warm-start.ts';

export interface TrainOptions {
  /** As `loadConfig` gives it. */
  readonly config: Config & { readonly name: string };
  /** Where a value of the config was written: for errors. */
  readonly where?: Where;
  /** What was typed, for the manifest. Default: `train()`. */
  readonly command?: string;
  /** Aborting writes a checkpoint and ends the run. */
  readonly signal?: AbortSignal;
  /** Default: silent. */
  readonly reporter?: Reporter;
  /** Absolute path of the run to go on with; `config` is then that run's own. */
  readonly resume?: string;
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
  const { config, reporter = SILENT } = options;
  const backend = await selectBackend(config.backend);
  reporter.note(describeBackend(backend));
  const rig = await openRig(config, options.where);
  try {
    const run = await Run.open(options, backend, rig);
    const lock = options.resume === undefined ? await lockRun(run.path) : undefined;
    try {
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
  #position: Position;

  private constructor(options: TrainOptions, rig: OpenRig, folder: RunFolder, learner: Learner, position: Position) {
    this.#config = options.config;
    this.#signal = options.signal ?? new AbortController().signal;
    this.#reporter = options.reporter ?? SILENT;
    this.#rig = rig;
    this.#folder = folder;
    this.#learner = learner;
    this.#heldOut = new HeldOut(folder, rig, learner, options.config);
    this.#position = position;
  }

  static async open(options: TrainOptions, { name, device }: Backend, rig: OpenRig): Promise<Run> {
    const { config, resume, command = 'train()', where } = options;
    if (config.warmStart !== undefined) checkScripts(config.warmStart, Object.keys(rig.environment.scripts), where);
    const modules = {
      environment: hashText(await bundle(rig.environment.world)),
      verifier: hashText(await bundle(rig.verifier.source)),
    };
    const manifest = createManifest({ config, command, backend: name, device, modules });
    return resume === undefined ? Run.#begin(options, rig, manifest) : Run.#resume(options, rig, manifest, resume);
  }

  static async #begin(options: TrainOptions, rig: OpenRig, manifest: Manifest): Promise<Run> {
    const { config, reporter = SILENT } = options;
    const weights = rig.agent.model.init(generator(deriveSeed(String(config.seed), 'init')));
    const learner = learnerFor(rig.agent, config, { weights });
    const folder = RunFolder.create({ dir: config.runs.dir, name: config.name, config, manifest });
    reporter.note(`run ${shownPath(folder.path)}`);
    const phase = config.warmStart === undefined ? 'train' : 'warm-start';
    const run = new Run(options, rig, folder, learner, { phase, step: 0 });
    if (phase === 'train') learner.beginReinforcement();
    await run.#checkpoint();
    return run;
  }

  static async #resume(options: TrainOptions, rig: OpenRig, manifest: Manifest, path: string): Promise<Run> {
    const { config, reporter = SILENT } = options;
    const folder = RunFolder.open(path, process.cwd());
    const { snapshot, position } = decodeCheckpoint(folder.latestCheckpoint(), configHash(config), rig.agent.files);
    if (position.phase === 'train' && position.step > config.iterations) {
      throw inputError(
        'RESUME_ITERATIONS',
        `expected iterations of at least ${position.step}, which the run has done already, found ${config.iterations}`,
        `isogym train --resume ${shownPath(folder.path)} iterations=${position.step}`,
      );
    }
    if (position.phase === 'train' && position.step === config.iterations && folder.has('summary.json')) {
      throw inputError(
        'RUN_FINISHED',
        `expected a run that was stopped, found one that has come to its end: ${position.step} iterations`,
        `To go on for longer: isogym train --resume ${shownPath(folder.path)} iterations=${2 * position.step}`,
      );
    }
    await folder.truncate((record) => isAfter(record, position));
    folder.writeConfig(config);
    reporter.note(`run ${shownPath(folder.path)}, resumed at ${position.phase} ${position.step}`);
    for (const change of changesSince(folder.manifest(), manifest)) {
      reporter.note(`not to the bytes that it would have come to: ${change}`);
    }
    return new Run(options, rig, folder, learnerFor(rig.agent, config, snapshot), position);
  }

  get path(): string {
    return this.#folder.path;
  }

  close(): void {
    this.#folder.close();
    this.#learner.dispose();
  }

  async train(backend: Backend, watch: { seconds(): number }): Promise<TrainOutcome> {
    const config = this.#config;
    const signal = this.#signal;
    try {
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
      const rows = [random, ...new Set([untrained, before]), trained, ...oracle];
      const summary = this.#summary(backend, rows, before, trained, watch.seconds());
      this.#folder.write('summary.json', `${JSON.stringify(summary, null, 2)}\n`);
      return { interrupted: false, summary, example: this.#heldOut.example(before.name) };
    } catch (error) {
      if (!signal.aborted) throw error;
      return this.#interrupted();
    }
  }

  /** Supervised steps from where the run stands; nothing where they are done. */
  async #warmStart(config: NonNullable<Config['warmStart']>): Promise<void> {
    if (this.#position.phase !== 'warm-start') return;
    const { agent, tasks } = this.#rig;
    const seed = String(this.#config.seed);
    const signal = this.#signal;
    const demonstrations = await demonstrate(config, this.#rig, tasks.train, seed, signal);
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
      commit: (step, update) => {
        this.#folder.append('metrics', { phase: 'warm-start', step, update });
        this.#position = { phase: 'warm-start', step: step + 1 };
        const [{ loss, entropy } = { loss: Number.NaN, entropy: Number.NaN }] = update.steps;
        const progress = { phase: 'warm-start', done: step + 1, total: config.steps, figures: { loss, entropy } };
        this.#reporter.progress(progress);
      },
    });
    learner.beginReinforcement();
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
      now,
      signal: this.#signal,
      commit: (iteration) => this.#commit(iteration),
      failed: (trajectories) => this.#keepFailure(trajectories),
    });
  }

  async #commit({ iteration, trajectories, metrics, marks }: Iteration): Promise<void> {
    const { iterations, checkpoint } = this.#config;
    for (const trajectory of trajectories) this.#folder.append('trajectories', trajectory);
    this.#folder.append('metrics', metrics);
    const seconds = (from: number, to: number) => (to - from) / 1000;
    const rolloutsPerSecond = trajectories.length / seconds(marks.start, marks.collected);
    this.#folder.append('timings', {
      iteration,
      rolloutSeconds: seconds(marks.start, marks.collected),
      updateSeconds: seconds(marks.collected, marks.end),
      rolloutsPerSecond,
      recordings: this.#learner.recordings + this.#rig.agent.recordings(),
    });
    const done = iteration + 1;
    this.#position = { phase: 'train', step: done };
    const figures = {
      reward: metrics.meanReturn ?? Number.NaN,
      success: metrics.successRate ?? Number.NaN,
      entropy: metrics.update.steps[0]?.entropy ?? Number.NaN,
      'rollouts/s': rolloutsPerSecond,
    };
    this.#reporter.progress({ phase: 'train', done, total: iterations, figures });
    if (done % checkpoint.every === 0 || done === iterations) await this.#checkpoint();
    await this.#evaluateAlong(done);
  }

  /** Where the config wants an evaluation after so many iterations. */
  async #evaluateAlong(done: number): Promise<void> {
    const { every } = this.#config.evaluation;
    if (every === 0 || done === 0 || done % every !== 0) return;
    const { row } = await this.#heldOut.evaluate('trained', this.#signal, `iteration-${done}`);
    const [greedy, sampled] = [row.success, row.sampledSuccess].map(({ mean }) => mean.toFixed(3));
    this.#reporter.note(`held-out after iteration ${done}: success ${greedy} greedy, ${sampled} sampled`);
  }

  /** A batch that could not be learnt from, beside the weights before it: what it takes to see the failure again. */
  async #keepFailure(trajectories: readonly Trajectory[]): Promise<void> {
    this.#folder.write('failed-batch.jsonl', trajectories.map((t) => `${JSON.stringify(t)}\n`).join(''));
    await this.#checkpoint();
    const path = shownPath(this.#folder.path);
    this.#reporter.note(
      `The iteration failed. Its batch is kept in ${path}/failed-batch.jsonl, the weights before it in the latest checkpoint.`,
    );
  }

  async #checkpoint(): Promise<void> {
    const { phase, step } = this.#position;
    const snapshot = await this.#learner.snapshot();
    const diverged = divergence(snapshot);
    if (diverged !== null) {
      throw new IsogymError('WEIGHTS_DIVERGED', `after ${phase} ${step}: expected finite weights, found ${diverged}`, {
        hint: 'Lower the learning rate and begin anew. The checkpoint before is kept as it was.',
      });
    }
    const files = encodeCheckpoint(snapshot, this.#position, configHash(this.#config), this.#rig.agent.files);
    this.#folder.saveCheckpoint(phase === 'train' ? step : 0, files, this.#config.checkpoint.keep);
  }

  async #interrupted(): Promise<TrainOutcome> {
    await this.#checkpoint();
    const run = shownPath(this.#folder.path);
    const resume = `isogym train --resume ${run}`;
    this.#reporter.note(`Interrupted; a checkpoint is written. To go on: ${resume}`);
    const { phase, step } = this.#position;
    const iterations = phase === 'train' ? step : 0;
    return { interrupted: true, summary: { run, interrupted: true, iterations, resume } };
  }

  #summary(
    { name, device }: Backend,
    rows: readonly Evaluated[],
    before: Evaluated,
    trained: Evaluated,
    wallSeconds: number,
  ): Summary {
    const { seed, iterations } = this.#config;
    return {
      run: shownPath(this.#folder.path),
      backend: name,
      device,
      seed,
      iterations,
      wallSeconds,
      policies: rows.map(({ row }) => row),
      gain: {
        over: before.name,
        success: pairedGain(before.greedy, trained.greedy, deriveSeed(String(seed), 'greedy')),
        sampledSuccess: pairedGain(before.sampled, trained.sampled, deriveSeed(String(seed), 'sampled')),
      },
    };
  }
}

/** Whether a record was written for what comes after a position. */
function isAfter(record: unknown, { phase, step }: Position): boolean {
  const of = record as { readonly phase?: string; readonly iteration?: number; readonly step?: number };
  if (of.phase === 'warm-start') return phase === 'warm-start' && (of.step ?? 0) >= step;
  return phase === 'warm-start' || (of.iteration ?? 0) >= step;
}
