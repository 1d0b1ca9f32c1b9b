/** @module A run: opens what a config names, trains, and leaves a run folder. The shell around `loop.ts`: here are disk, clock and progress. */
import { existsSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { bundle } from '../env/sandbox/bundle.ts';
import { now, stopwatch } from '../io/clock.ts';
import { type ConfigSource, loadConfig } from '../io/config-file.ts';
import { configHash, createManifest, hashText } from '../io/manifest.ts';
import { RunFolder } from '../io/run-folder.ts';
import { type Backend, selectBackend } from '../policy/backends/select.ts';
import { IsogymError } from '../records/errors.ts';
import { deriveSeed, generator } from '../records/random.ts';
import type { Trajectory } from '../records/trajectory.ts';
import { decodeCheckpoint, encodeCheckpoint, type Position } from './checkpoint.ts';
import type { Config } from './config.ts';
import { type Evaluation, type EvaluationMode, evaluate, type PolicyName, pairedGain, policyRow } from './evaluate.ts';
import { Learner } from './learner.ts';
import { type Iteration, reinforce } from './loop.ts';
import type { Reporter } from './reporter.ts';
import { type OpenRig, openRig } from './rig.ts';
import type { Example, Interruption, Summary } from './summary.ts';
import { demonstrate, warmStart } from './warm-start.ts';

export interface TrainOptions {
  readonly config: Config & { readonly name: string };
  readonly source: ConfigSource;
  /** What was typed: kept in the manifest. */
  readonly command: string;
  readonly signal: AbortSignal;
  readonly reporter: Reporter;
  /** Absolute path of the run to go on with; `config` is then that run's own. */
  readonly resume?: string;
}

export type TrainOutcome =
  | { readonly interrupted: false; readonly summary: Summary; readonly example: Example }
  | { readonly interrupted: true; readonly summary: Interruption };

/** Trains as the config says, from the start or from where `resume` was stopped. @throws whatever is wrong with config, modules, backend or records */
export async function train(options: TrainOptions): Promise<TrainOutcome> {
  const { config, reporter } = options;
  const watch = stopwatch();
  const backend = await selectBackend(config.backend);
  reporter.note(describeBackend(backend));
  const rig = await openRig(config);
  try {
    const run = await Run.open(options, backend, rig);
    try {
      return await run.train(watch);
    } finally {
      run.close();
    }
  } finally {
    await rig.close();
  }
}

/** `device: …`, and why each better backend was passed over. */
export function describeBackend({ name, device, passedOver }: Backend): string {
  const reasons = passedOver.map(({ backend, reason }) => `${backend}: ${reason}`);
  return [`backend ${name}: ${device}`, ...(reasons.length > 0 ? [`passed over ${reasons.join('; ')}`] : [])].join(
    '; ',
  );
}

class Run {
  readonly #options: TrainOptions;
  readonly #backend: Backend;
  readonly #rig: OpenRig;
  readonly #folder: RunFolder;
  readonly #learner: Learner;
  readonly #hash: string;
  #position: Position;

  private constructor(
    options: TrainOptions,
    backend: Backend,
    rig: OpenRig,
    folder: RunFolder,
    learner: Learner,
    position: Position,
  ) {
    this.#options = options;
    this.#backend = backend;
    this.#rig = rig;
    this.#folder = folder;
    this.#learner = learner;
    this.#position = position;
    this.#hash = configHash(options.config);
  }

  static async open(options: TrainOptions, backend: Backend, rig: OpenRig): Promise<Run> {
    const { config, resume, reporter } = options;
    const { agent } = rig;
    const learning = {
      algorithm: config.algorithm,
      optimizer: config.optimizer,
      temperature: agent.temperature,
      microTokens: config.batch.microTokens,
    };
    if (resume === undefined) {
      const weights = agent.model.init(generator(deriveSeed(String(config.seed), 'init')));
      const folder = RunFolder.create({
        dir: config.runs.dir,
        name: config.name,
        config,
        manifest: createManifest({ config, command: options.command, modules: await moduleHashes(rig) }),
      });
      reporter.note(`run ${shown(folder.path)}`);
      const phase = config.warmStart === undefined ? 'train' : 'warm-start';
      const run = new Run(options, backend, rig, folder, new Learner(agent.model, learning, { weights }), {
        phase,
        step: 0,
      });
      await run.#checkpoint();
      return run;
    }
    const folder = RunFolder.open(resume, process.cwd());
    const { path } = folder.latestCheckpoint();
    const read = (file: string) => (existsSync(join(path, file)) ? readFileSync(join(path, file)) : null);
    const { snapshot, position } = decodeCheckpoint(read, configHash(config), agent.files);
    await folder.truncate((record) => isAfter(record, position));
    reporter.note(`run ${shown(folder.path)}, resumed at ${position.phase} ${position.step}`);
    return new Run(options, backend, rig, folder, new Learner(agent.model, learning, snapshot), position);
  }

  close(): void {
    this.#folder.close();
    this.#learner.dispose();
  }

  async train(watch: { seconds(): number }): Promise<TrainOutcome> {
    const { config, reporter, signal } = this.#options;
    try {
      const rows = [await this.#evaluate('random'), await this.#evaluate('untrained')];
      if (config.warmStart !== undefined) {
        await this.#warmStart(config.warmStart);
        rows.push(await this.#evaluate('warm-start'));
      }
      await this.#reinforce();
      rows.push(await this.#evaluate('trained'));
      if ('oracle' in this.#rig.environment.scripts) rows.push(await this.#evaluate('oracle'));
      return this.#finish(rows, watch.seconds());
    } catch (error) {
      if (!signal.aborted) throw error;
      await this.#checkpoint();
      const resume = `isogym train --resume ${shown(this.#folder.path)}`;
      reporter.note(`Interrupted; a checkpoint is written. To go on: ${resume}`);
      const iterations = this.#position.phase === 'train' ? this.#position.step : 0;
      return { interrupted: true, summary: { run: shown(this.#folder.path), interrupted: true, iterations, resume } };
    }
  }

  async #warmStart(config: NonNullable<Config['warmStart']>): Promise<void> {
    if (this.#position.phase !== 'warm-start') return;
    const { signal, reporter } = this.#options;
    const seed = String(this.#options.config.seed);
    const { agent, environment, tasks } = this.#rig;
    const demonstrations = await demonstrate(
      config,
      this.#rig,
      tasks.train,
      Object.keys(environment.scripts),
      seed,
      signal,
    );
    await warmStart({
      config,
      agent,
      learner: this.#learner,
      demonstrations,
      seed,
      from: this.#position.step,
      signal,
      commit: (step, update) => {
        this.#folder.append('metrics', { phase: 'warm-start', step, update });
        this.#position = { phase: 'warm-start', step: step + 1 };
        const [{ loss, entropy } = { loss: Number.NaN, entropy: Number.NaN }] = update.steps;
        reporter.progress({ phase: 'warm-start', done: step + 1, total: config.steps, figures: { loss, entropy } });
      },
    });
    this.#learner.beginReinforcement();
    this.#position = { phase: 'train', step: 0 };
    await this.#checkpoint();
  }

  async #reinforce(): Promise<void> {
    const { config, signal } = this.#options;
    const { agent, tasks } = this.#rig;
    await reinforce({
      config,
      rig: this.#rig,
      agent,
      learner: this.#learner,
      tasks: tasks.train,
      from: this.#position.step,
      now,
      signal,
      commit: (iteration) => this.#commit(iteration),
      failed: (trajectories) => this.#keepFailure(trajectories),
    });
  }

  async #commit({ iteration, trajectories, metrics, marks }: Iteration): Promise<void> {
    const { config, reporter } = this.#options;
    for (const trajectory of trajectories) this.#folder.append('trajectories', trajectory);
    this.#folder.append('metrics', metrics);
    const seconds = (from: number, to: number) => (to - from) / 1000;
    const rate = trajectories.length / seconds(marks.start, marks.collected);
    this.#folder.append('timings', {
      iteration,
      rolloutSeconds: seconds(marks.start, marks.collected),
      updateSeconds: seconds(marks.collected, marks.end),
      rolloutsPerSecond: rate,
    });
    this.#position = { phase: 'train', step: iteration + 1 };
    const done = iteration + 1;
    reporter.progress({
      phase: 'train',
      done,
      total: config.iterations,
      figures: {
        reward: metrics.meanReturn ?? Number.NaN,
        success: metrics.successRate ?? Number.NaN,
        entropy: metrics.update.steps[0]?.entropy ?? Number.NaN,
        'rollouts/s': rate,
      },
    });
    if (done % config.checkpoint.every === 0 || done === config.iterations) await this.#checkpoint();
    if (config.evaluation.every > 0 && done % config.evaluation.every === 0) {
      const { success, sampledSuccess } = (await this.#evaluate('trained', `iteration-${done}`)).row;
      reporter.note(
        `held-out at iteration ${done}: success ${percent(success.mean)} greedy, ${percent(sampledSuccess.mean)} sampled`,
      );
    }
  }

  /** A batch whose step failed, beside the latest good checkpoint: what it takes to see the failure again. */
  async #keepFailure(trajectories: readonly Trajectory[]): Promise<void> {
    await this.#checkpoint();
    this.#folder.write('failed-batch.jsonl', trajectories.map((t) => `${JSON.stringify(t)}\n`).join(''));
    this.#options.reporter.note(
      `The batch that failed is kept in ${shown(this.#folder.path)}/failed-batch.jsonl, the weights before it in the latest checkpoint.`,
    );
  }

  async #checkpoint(): Promise<void> {
    const { config } = this.#options;
    const { phase, step } = this.#position;
    const files = encodeCheckpoint(await this.#learner.snapshot(), this.#position, this.#hash, this.#rig.agent.files);
    this.#folder.saveCheckpoint(phase === 'train' ? step : 0, files, config.checkpoint.keep);
  }

  /** Both modes on the held-out tasks; read from the run folder where they are there already. */
  async #evaluate(name: PolicyName, file: string = name): Promise<Evaluated> {
    const path = join(this.#folder.path, 'evaluations', `${file}.json`);
    if (!existsSync(path)) {
      const modes: EvaluationMode[] = name === 'random' || name === 'oracle' ? ['sampled'] : ['greedy', 'sampled'];
      const found: Partial<Record<EvaluationMode, Evaluation>> = {};
      for (const mode of modes) found[mode] = await this.#evaluateOnce(name, file, mode);
      this.#folder.write(join('evaluations', `${file}.json`), `${JSON.stringify(found)}\n`);
    }
    const { greedy, sampled } = JSON.parse(readFileSync(path, 'utf8')) as { greedy?: Evaluation; sampled: Evaluation };
    return {
      name,
      greedy: greedy ?? sampled,
      sampled,
      row: policyRow(name, greedy ?? sampled, sampled, String(this.#options.config.seed)),
    };
  }

  async #evaluateOnce(name: PolicyName, file: string, mode: EvaluationMode): Promise<Evaluation> {
    const { config, signal } = this.#options;
    const { agent, tasks } = this.#rig;
    const policy =
      name === 'random'
        ? ({ kind: 'uniform' } as const)
        : name === 'oracle'
          ? ({ kind: 'scripted', script: 'oracle' } as const)
          : await agent.policy(this.#learner.weights, this.#learner.version, mode);
    const heldOut = tasks.heldOut.slice(0, config.evaluation.tasks);
    const { evaluation, trajectories } = await evaluate(this.#rig, heldOut, policy, mode, String(config.seed), signal);
    this.#folder.write(
      join('evaluations', `${file}.${mode}.jsonl`),
      trajectories.map((t) => `${JSON.stringify(t)}\n`).join(''),
    );
    return evaluation;
  }

  #finish(rows: readonly Evaluated[], wallSeconds: number): TrainOutcome {
    const { config } = this.#options;
    const row = (name: PolicyName) => rows.find((r) => r.name === name);
    const over = row('warm-start') ?? row('untrained');
    const trained = row('trained');
    if (over === undefined || trained === undefined)
      throw new IsogymError('INTERNAL', 'a run ended without its evaluations');
    const seed = String(config.seed);
    const summary: Summary = {
      run: shown(this.#folder.path),
      backend: this.#backend.name,
      device: this.#backend.device,
      seed: config.seed,
      iterations: config.iterations,
      wallSeconds,
      policies: rows.map((r) => r.row),
      gain: {
        over: over.name,
        success: pairedGain(over.greedy, trained.greedy, deriveSeed(seed, 'greedy')),
        sampledSuccess: pairedGain(over.sampled, trained.sampled, deriveSeed(seed, 'sampled')),
      },
    };
    this.#folder.write('summary.json', `${JSON.stringify(summary, null, 2)}\n`);
    return { interrupted: false, summary, example: this.#example(over.name) };
  }

  /** The first held-out task that was failed before and solved after; the first of all where there is none. */
  #example(over: PolicyName): Example {
    const read = (name: PolicyName) =>
      readFileSync(join(this.#folder.path, 'evaluations', `${name}.greedy.jsonl`), 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Trajectory);
    const [before, after] = [read(over), read('trained')];
    const found = before.findIndex((t, i) => !t.verdict.success && after[i]?.verdict.success === true);
    const at = Math.max(0, found);
    return { before: before[at] as Trajectory, after: after[at] as Trajectory };
  }
}

interface Evaluated {
  readonly name: PolicyName;
  readonly greedy: Evaluation;
  readonly sampled: Evaluation;
  readonly row: ReturnType<typeof policyRow>;
}

/** Whether a record was written for what comes after a position. */
function isAfter(record: unknown, { phase, step }: Position): boolean {
  const { phase: of, iteration, step: warm } = record as { phase?: string; iteration?: number; step?: number };
  if (of === 'warm-start') return phase === 'warm-start' && (warm ?? 0) >= step;
  return phase === 'warm-start' || (iteration ?? 0) >= step;
}

async function moduleHashes({ environment, verifier }: OpenRig): Promise<{ environment: string; verifier: string }> {
  return { environment: hashText(await bundle(environment.world)), verifier: hashText(await bundle(verifier.source)) };
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

/** A path as it can be typed from here. */
function shown(path: string): string {
  const here = relative(process.cwd(), path);
  return here === '' || here.startsWith('..') ? path : here;
}

/** A run's latest checkpoint on its held-out tasks. */
export async function evaluateRun(options: {
  readonly run: string;
  readonly signal: AbortSignal;
  readonly reporter: Reporter;
}): Promise<{ readonly interrupted: boolean; readonly summary: object }> {
  const { run, reporter, signal } = options;
  const { config } = loadConfig({ file: join(run, 'config.yaml'), overrides: [], cwd: process.cwd() });
  const backend = await selectBackend(config.backend);
  reporter.note(describeBackend(backend));
  const rig = await openRig(config);
  try {
    const { path, iteration } = RunFolder.open(run, process.cwd()).latestCheckpoint();
    const read = (file: string) => (existsSync(join(path, file)) ? readFileSync(join(path, file)) : null);
    const { snapshot } = decodeCheckpoint(read, configHash(config), rig.agent.files);
    const learning = {
      algorithm: config.algorithm,
      optimizer: config.optimizer,
      temperature: rig.agent.temperature,
      microTokens: config.batch.microTokens,
    };
    const learner = new Learner(rig.agent.model, learning, snapshot);
    const seed = String(config.seed);
    const heldOut = rig.tasks.heldOut.slice(0, config.evaluation.tasks);
    const pass = async (mode: EvaluationMode) => {
      const policy = await rig.agent.policy(learner.weights, learner.version, mode);
      return (await evaluate(rig, heldOut, policy, mode, seed, signal)).evaluation;
    };
    const row = policyRow('trained', await pass('greedy'), await pass('sampled'), seed);
    learner.dispose();
    return {
      interrupted: false,
      summary: { run: shown(run), backend: backend.name, device: backend.device, checkpoint: iteration, policy: row },
    };
  } finally {
    await rig.close();
  }
}
