import { defineConfig } from 'vitest/config';

/** `npm test` is what runs in minutes; `npm run test:full` (mode full) the long proofs, in files named `*.full.ts`. */
export default defineConfig(({ mode }) => ({
  test: {
    include: [mode === 'full' ? 'test/**/*.full.ts' : 'test/**/*.test.ts'],
    // No test measures time; a busy machine with two cores must not fail one.
    testTimeout: mode === 'full' ? 3_600_000 : 120_000,
    hookTimeout: 120_000,
    // As bin/isogym.js starts the program.
    execArgv: ['--no-node-snapshot', '--no-incremental-marking'],
  },
}));
