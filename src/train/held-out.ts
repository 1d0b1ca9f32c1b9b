/** @module A run's evaluations on the held-out tasks: made once, kept in the run folder, read from it afterwards. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { PolicySpec } from '../env/rollouts/rollouts.ts';
import type { RunFolder } from '../io/run-folder.ts';
import { IsogymError } from '../records/errors.ts';
import { parseJson } from '../records/json.ts';
import type { Trajectory } from '../records/trajectory.ts';
import type { Config } from './config.ts';
import { type Evaluation, type EvaluationMode, evaluate, type PolicyName, policyRow } from './evaluate.ts';
import type { Learner } from './learner.ts';
import type { OpenRig } from './rig.ts';
import type { Evaluated, Example } from './summary.ts';
import { usableOnly } from './usable.ts';

const evaluationSchema = z.object({
  tasks: z.int(),
  unusable: z.int(),
  outcomes: z
    .array(z.object({ taskId: z.string(), success: z.boolean(), return: z.number(), steps: z.int() }))
    .readonly(),
});

/** What is used of an episode that was kept: whether it succeeded, and what `describeEpisode` shows. */
const episodeSchema = z.looseObject({
  id: z.string(),
  taskId: z.string(),
  prompt: z.string(),
  stop: z.string(),
  steps: z.array(z.looseObject({ action: z.looseObject({ text: z.string() }), calls: z.array(z.looseObject({})) })),
  verdict: z.looseObject({ success: z.boolean(), reasons: z.array(z.string()) }),
});

/** What `evaluations/FILE.json` holds. */
const keptSchema = z.object({
  /** Of the weights that the learner had then. */
  version: z.int(),
  greedy: evaluationSchema,
  sampled: evaluationSchema,
  /** Reset level `state` had been lost by then: what follows begins in fresh contexts. */
  resetLost: z.literal(true).optional(),
});
type Kept = Readonly<z.infer<typeof keptSchema>>;

function fileOf(name: string): string {
  return join('evaluations', `${name}.json`);
}

/** Policies that have one way to act: their one evaluation stands for both modes. */
const ONE_MODE: readonly PolicyName[] = ['random', 'oracle'];

export class HeldOut {
  readonly #folder: RunFolder;
  readonly #rig: OpenRig;
  readonly #learner: Learner;
  readonly #config: Pick<Config, 'seed' | 'evaluation' | 'warmStart'>;

  constructor(
    folder: RunFolder,
    rig: OpenRig,
    learner: Learner,
    config: Pick<Config, 'seed' | 'evaluation' | 'warmStart'>,
  ) {
    this.#folder = folder;
    this.#rig = rig;
    this.#learner = learner;
    this.#config = config;
  }

  /**
   * The policy of that name as it is now, in both modes, or as it was where `evaluations/FILE.json` is there already. The
   * episodes lie beside it, in `FILE.greedy.jsonl` and `FILE.sampled.jsonl`.
   * @throws NO_USABLE_ROLLOUT
   */
  async evaluate(name: PolicyName, signal: AbortSignal, file: string = name): Promise<Evaluated> {
    const kept = this.#kept(file);
    // A run that goes on for longer than it was begun for has been evaluated as trained before.
    if (kept !== null && (name !== 'trained' || kept.version === this.#learner.version)) {
      if (kept.resetLost) this.#rig.rollouts.resetLost = true;
      // What is shown of them at the end is looked at now, and not once everything has been learnt.
      if (!ONE_MODE.includes(name)) this.#episodes(file);
      return this.#row(name, kept);
    }
    this.#checkWeights(name, file);
    const sampled = await this.#pass(name, file, 'sampled', signal);
    const greedy = ONE_MODE.includes(name) ? sampled : await this.#pass(name, file, 'greedy', signal);
    const { resetLost } = this.#rig.rollouts;
    const made = { version: this.#learner.version, greedy, sampled, ...(resetLost ? { resetLost } : {}) };
    this.#folder.write(fileOf(file), `${JSON.stringify(made)}\n`);
    return this.#row(name, made);
  }

  #kept(file: string): Kept | null {
    const path = join(this.#folder.path, fileOf(file));
    if (!existsSync(path)) return null;
    try {
      return keptSchema.parse(JSON.parse(readFileSync(path, 'utf8')));
    } catch (cause) {
      throw new IsogymError('RECORD_BROKEN', `${path}: expected what an evaluation came to, found something else`, {
        cause,
        hint: 'Restore the file, or begin a new run.',
      });
    }
  }

  /** Policies that are gone once learning goes on cannot be evaluated afterwards: those of now would stand under their names. */
  #checkWeights(name: PolicyName, file: string): void {
    const of: Partial<Record<PolicyName, number>> = { untrained: 0, 'warm-start': this.#config.warmStart?.steps ?? 0 };
    const wanted = of[name];
    if (wanted === undefined || wanted === this.#learner.version) return;
    throw new IsogymError(
      'RECORD_MISSING',
      `${join(this.#folder.path, fileOf(file))}: expected what the evaluation of the ${name} policy came to, found nothing, and its weights are gone`,
      { hint: 'Restore the file, or begin a new run.' },
    );
  }

  #row(name: PolicyName, { greedy, sampled }: Kept): Evaluated {
    return { name, greedy, sampled, row: policyRow(name, greedy, sampled, String(this.#config.seed)) };
  }

  /** The first held-out task that `before` failed and `trained` solves; the first of all where there is none. */
  example(before: PolicyName): Example {
    const [was, is] = [this.#episodes(before), this.#episodes('trained')];
    const at = Math.max(
      0,
      was.findIndex((episode, i) => !episode.verdict.success && is[i]?.verdict.success === true),
    );
    return { before: was[at] as Trajectory, after: is[at] as Trajectory };
  }

  async #pass(name: PolicyName, file: string, mode: EvaluationMode, signal: AbortSignal): Promise<Evaluation> {
    const { evaluation, trajectories } = await evaluate(
      this.#rig,
      this.#rig.tasks.heldOut.slice(0, this.#config.evaluation.tasks),
      await this.#policy(name, mode),
      mode,
      String(this.#config.seed),
      signal,
    );
    this.#folder.writeRecords(join('evaluations', `${file}.${mode}.jsonl`), trajectories);
    usableOnly(trajectories);
    return evaluation;
  }

  async #policy(name: PolicyName, mode: EvaluationMode): Promise<PolicySpec> {
    if (name === 'random') return { kind: 'uniform' };
    if (name === 'oracle') return { kind: 'scripted', script: 'oracle' };
    return this.#rig.agent.policy(this.#learner.weights, this.#learner.version, mode);
  }

  /** @throws RECORD_BROKEN */
  #episodes(file: string): readonly Trajectory[] {
    const path = join(this.#folder.path, 'evaluations', `${file}.greedy.jsonl`);
    try {
      return readFileSync(path, 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => episodeSchema.parse(parseJson(line)) as unknown as Trajectory);
    } catch (cause) {
      throw new IsogymError('RECORD_BROKEN', `${path}: expected the episodes of an evaluation, found something else`, {
        cause,
        hint: 'Restore the file, or begin a new run.',
      });
    }
  }
}
