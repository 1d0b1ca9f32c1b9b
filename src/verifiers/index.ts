/** @module isogym's public API for those who write verifiers. Importing it starts nothing. */
export type { Score } from '../records/trajectory.ts';
export { VerifierPool } from './pool.ts';
export { type VerifierEngine, VerifierRunner } from './runner.ts';
export { defineVerifier, type Verifier, type VerifierInput, type Verify } from './verifier.ts';
