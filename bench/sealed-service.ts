/** @module A sandbox host that runs a policy's code and nothing else: what bench/sealed.ts measures. */
import { type CodeLimits, CodeSandbox } from '../src/env/sandbox/code.ts';
import type { StartService } from '../src/env/sandbox/host/main.ts';

const start: StartService = async (limits: CodeLimits) => {
  const run = new CodeSandbox(limits).session();
  return {
    async run(body) {
      const { code, inputs, times } = body as { code: string; inputs: readonly string[]; times: number };
      let last = 0;
      for (let i = 0; i < times; i++) last = run(code, inputs).length;
      return last;
    },
  };
};

export default start;
