/** @module The return of an attempt, found by playing it again. */
import { defineVerifier } from 'isogym/verifiers';

export default defineVerifier({
  name: 'frozen-lake-return',
  source: new URL('./verify.ts', import.meta.url),
  // What an attempt can be worth, and what counts as a success.
  range: [0, 1],
  success: 1,
  reset: 'state',
});
