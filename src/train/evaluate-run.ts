/** @module `isogym eval`: a run's latest checkpoint on its held-out tasks. */
import { join } from 'node:path';
import { loadConfig } from '../io/config-file.ts';
import { changesSince, configHash, engineOf } from '../io/manifest.ts';
import { shownPath } from '../io/paths.ts';
import { RunFolder } from '../io/run-folder.ts';
import { type BackendName, describeBackend, selectBackend } from '../policy/backends/select.ts';
import { decodeCheckpoint, type Position } from './checkpoint.ts';
import { type EvaluationMode, evaluate, type PolicyRow, policyRow } from './evaluate.ts';
import { environmentHashes, tasksHash, verifierHashes } from './foundation.ts';
import { learnerFor } from './learner.ts';
import type { Reporter } from './reporter.ts';
import { openRig } from './rig.ts';
import { usableOnly } from './usable.ts';

export interface RunEvaluation {
  readonly run: string;
  readonly backend: BackendName;
  readonly device: string;
  /** How far the run was when the checkpoint was written. */
  readonly position: Position;
  readonly policy: PolicyRow;
}

/** @param options.run absolute path of a run folder. @throws NO_CHECKPOINT, CHECKPOINT_BROKEN, NO_USABLE_ROLLOUT, and whatever is wrong with its config */
export async function evaluateRun(options: {
  readonly run: string;
  readonly signal: AbortSignal;
  readonly reporter: Reporter;
}): Promise<RunEvaluation> {
  const { run, reporter, signal } = options;
  const { config, where } = loadConfig({ file: join(run, 'config.yaml'), overrides: [], cwd: process.cwd() });
  const backend = await selectBackend(config.backend);
  reporter.note(describeBackend(backend));
  const rig = await openRig(config, { where, notice: reporter.note, signal });
  try {
    const folder = RunFolder.open(run, process.cwd());
    const { snapshot, position, resetLost } = decodeCheckpoint(
      folder.latestCheckpoint(),
      configHash(config),
      rig.agent.files,
    );
    const [environment, verifier] = [await environmentHashes(rig.environment), await verifierHashes(rig.verifier)];
    const grounds = { environment, verifier, tasks: tasksHash(rig.tasks), backend: backend.name };
    for (const change of changesSince(folder.manifest(), { ...engineOf(config), ...grounds })) {
      reporter.note(`not what the run was trained with, its figures may be others: ${change}`);
    }
    if (resetLost) rig.rollouts.resetLost = true;
    const learner = learnerFor(rig.agent, config, snapshot);
    const heldOut = rig.tasks.heldOut.slice(0, config.evaluation.tasks);
    const seed = String(config.seed);
    const pass = async (mode: EvaluationMode) => {
      const policy = await rig.agent.policy(learner.weights, learner.version, mode);
      const { evaluation, trajectories } = await evaluate(rig, heldOut, policy, mode, seed, signal);
      usableOnly(trajectories);
      return evaluation;
    };
    const policy = policyRow('trained', await pass('greedy'), await pass('sampled'), seed);
    learner.dispose();
    return { run: shownPath(run), backend: backend.name, device: backend.device, position, policy };
  } finally {
    await rig.close();
  }
}
