/** @module A verifier's worker: one runner in a thread of its own. It is handed the bundled script, so that it imports no user code. */
import { workerData } from 'node:worker_threads';
import type { Score } from '../records/trajectory.ts';
import { type Judge, VerifierRunner } from './runner.ts';
import type { ShownInput } from './verifier.ts';

/** What the pool starts a worker with. */
export interface WorkerSetup {
  readonly judge: Judge;
  readonly script: string;
}

const { judge, script } = workerData as WorkerSetup;
const runner = new VerifierRunner(judge, script);

export default function work(inputs: readonly ShownInput[] | 'close'): readonly Score[] {
  if (inputs === 'close') {
    runner.dispose();
    return [];
  }
  return inputs.map((input) => runner.score(input));
}
