/** @module Scoring in a sandbox host of the verifier's own, for verifiers that run code which a policy wrote. */
import type { HostService, StartService } from '../env/sandbox/host/main.ts';
import { type Judge, VerifierRunner } from './runner.ts';
import type { WrittenInputs } from './written.ts';

export interface ScoringSetup {
  readonly judge: Judge;
  /** The bundled verifier. */
  readonly script: string;
}

const start: StartService = async ({ judge, script }: ScoringSetup): Promise<HostService> => {
  const runner = new VerifierRunner(judge, script);
  return { run: async (inputs) => runner.scoreWritten(inputs as WrittenInputs) };
};

export default start;
