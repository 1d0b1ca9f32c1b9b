/** @module The world of js-puzzles. Runs inside the isolate: it passes the policy's code on, and never runs it here. */
import type { CreateWorld } from '../index.ts';

const createWorld: CreateWorld = ({ runCode }) => ({
  tools: {
    run({ code, input }: { code: string; input: string }) {
      const [outcome] = runCode(code, [input]);
      if (outcome === undefined) throw new Error('the code could not be run');
      return outcome.ok ? outcome.json : `${outcome.failure}: ${outcome.message}`;
    },
  },
});

export default createWorld;
