/** @module The verifier of my-environment: declared here, run in an isolate of its own once an episode has ended. */
import { defineVerifier } from 'isogym/verifiers';

export default defineVerifier({
  name: 'my-environment-answer',
  source: new URL('./verify.ts', import.meta.url),
  // An answer that is wrong for every task.
  canary: '0',
});
