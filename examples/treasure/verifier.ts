/** @module A verifier of one's own: declared here, run in an isolate of its own. */
import { defineVerifier } from 'isogym/verifiers';

export default defineVerifier({
  name: 'right-gem',
  source: new URL('./verify.ts', import.meta.url),
  canary: 'glass',
});
