/** @module A verifier's worker: one runner in a thread of its own. It is handed the bundled script, so that it imports no user code. */
import { workerData } from 'node:worker_threads';
import { type Judge, VerifierRunner } from './runner.ts';
import type { WrittenInputs } from './written.ts';

/** What the pool starts a worker with. */
export interface WorkerSetup {
  readonly judge: Judge;
  readonly script: string;
}

const { judge, script } = workerData as WorkerSetup;
const runner = new VerifierRunner(judge, script);

/** JSON of the scores: one text crosses a thread cheaper than many objects. */
export default function work(inputs: WrittenInputs | 'close'): string {
  if (inputs !== 'close') return JSON.stringify(runner.scoreWritten(inputs));
  runner.dispose();
  return '[]';
}
