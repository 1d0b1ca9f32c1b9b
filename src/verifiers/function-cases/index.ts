/** @module Function cases: the final answer is a JavaScript function, tried on hidden cases. It runs in a process of the verifier's own. */
import { defineVerifier } from '../verifier.ts';

export default defineVerifier({
  name: 'function-cases',
  source: new URL('./verify.ts', import.meta.url),
  code: { timeoutMs: 250, memoryMiB: 32, maxOutput: 10_000, maxRuns: 64 },
  reads: ['held', 'final'],
  // Far above the bounds of the code of one answer.
  timeoutMs: 30_000,
});
