/** @module A sandbox host that runs a policy's code and nothing else: what `isogym bench sandbox` measures. */
import { type CodeLimits, CodeSandbox } from './code.ts';
import type { StartService } from './host/main.ts';

/** The same code run `times` times, each in a context of its own; the answer is what became of the last. */
export interface CodeTask {
  readonly code: string;
  readonly inputs: readonly string[];
  readonly times: number;
}

const start: StartService = async (limits: CodeLimits) => {
  const run = new CodeSandbox(limits).session();
  return {
    async run(body) {
      const { code, inputs, times } = body as CodeTask;
      let last = run(code, inputs);
      for (let i = 1; i < times; i++) last = run(code, inputs);
      return last;
    },
  };
};

export default start;
