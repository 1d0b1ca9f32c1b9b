/** @module Exact answer: the final answer against `held.answer`. */
import { defineVerifier } from '../verifier.ts';

export default defineVerifier({
  name: 'exact-answer',
  source: new URL('./verify.ts', import.meta.url),
  reset: 'state',
  reads: ['held', 'final'],
});
