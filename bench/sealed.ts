/**
 * @module What sealing costs and how soon it is whole again: hangs, isolation thread against process, code that a policy wrote.
 * `node bench/sealed.ts`: medians, on this machine, as JSON. Ratios within one run say more than the numbers.
 */
import { availableParallelism, cpus } from 'node:os';
import { performance } from 'node:perf_hooks';
import { importEnvironment } from '../src/env/load.ts';
import { RolloutPool } from '../src/env/pool.ts';
import type { RolloutRequest } from '../src/env/rollouts.ts';
import { CODE_DEFAULTS } from '../src/env/sandbox/code.ts';
import { HostSupervisor } from '../src/env/sandbox/host/supervisor.ts';
import { publicPart } from '../src/records/task.ts';

const TOY_LOOKUP = new URL('../src/env/toy-lookup/index.ts', import.meta.url).href;
const LIMITS = { residentMiB: 2000, graceMs: 250, outsideMs: 10_000 };
const HANG = '() => { const a = []; a.length = 2 ** 32 - 1; return a.lastIndexOf(5); }';

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** From the moment at which the code's timeout and grace are over to the answer of the next task, at rest between two hangs. */
async function hangs(rounds: number): Promise<{ afterDeadlineMs: number; fromHangMs: number }> {
  const code = { ...CODE_DEFAULTS, timeoutMs: 250 };
  const service = new URL('./sealed-service.ts', import.meta.url);
  const supervisor = new HostSupervisor({ service, setup: code, limits: LIMITS, recycleAfter: 1e9 });
  await supervisor.start();
  const whole: number[] = [];
  for (let round = 0; round < rounds; round++) {
    await supervisor.run({ code: '(x) => x', inputs: ['1'], times: 1 }, { weight: 1 });
    // So that the spare one is ready, as it is but for the first moment after a death.
    await new Promise((resolve) => setTimeout(resolve, 1500));
    const start = performance.now();
    await supervisor.run({ code: HANG, inputs: ['1'], times: 1 }, { weight: 1 });
    await supervisor.run({ code: '(x) => x', inputs: ['1'], times: 1 }, { weight: 1 });
    whole.push(performance.now() - start);
  }
  await supervisor.close();
  return { fromHangMs: median(whole), afterDeadlineMs: median(whole) - code.timeoutMs - LIMITS.graceMs };
}

async function policyCode(): Promise<{ freshContextPerSecond: number; compiledAgainPerSecond: number }> {
  const service = new URL('./sealed-service.ts', import.meta.url);
  const supervisor = new HostSupervisor({
    service,
    setup: { ...CODE_DEFAULTS, maxRuns: 1e9, timeoutMs: 10_000 },
    limits: LIMITS,
    recycleAfter: 1e9,
  });
  await supervisor.start();
  const code = '(list) => list.map((x) => x * 2)';
  const rate = async (inputs: readonly string[], times: number) => {
    const rates: number[] = [];
    for (let round = 0; round < 5; round++) {
      const start = performance.now();
      await supervisor.run({ code, inputs, times }, { weight: 1 });
      rates.push((inputs.length * times) / ((performance.now() - start) / 1000));
    }
    return median(rates);
  };
  const freshContextPerSecond = await rate(['[1,2,3]'], 500);
  const many = Array.from({ length: 20_000 }, (_, i) => `[${i},2,3]`);
  const compiledAgainPerSecond = await rate(many, 1);
  await supervisor.close();
  return { freshContextPerSecond, compiledAgainPerSecond };
}

/** Episodes a second of the scripted oracle of toy-lookup, reset in place; both kinds take turns. */
async function isolation(
  workers: number,
): Promise<{ workers: number; thread: number; process: number; ratio: number }> {
  const environment = await importEnvironment(TOY_LOOKUP);
  const requests = Array.from({ length: 6000 }, (_, index): RolloutRequest => {
    const task = publicPart(environment.task('bench', index, environment.options.parse({})));
    return { id: task.id, group: task.id, task, iteration: 0, rollout: 0, seed: task.id };
  });
  const kinds = ['thread', 'process'] as const;
  const pools = await Promise.all(
    kinds.map((kind) =>
      RolloutPool.start({ environment: TOY_LOOKUP, options: {}, workers, reset: 'state', isolation: kind }),
    ),
  );
  const rates: [number[], number[]] = [[], []];
  for (let round = 0; round < 7; round++) {
    for (const [i, pool] of pools.entries()) {
      const start = performance.now();
      await pool.run(requests, { kind: 'scripted', script: 'oracle' });
      // The first two warm up.
      if (round > 1) rates[i as 0 | 1].push(requests.length / ((performance.now() - start) / 1000));
    }
  }
  await Promise.all(pools.map((pool) => pool.close()));
  const [thread, inProcess] = [median(rates[0]), median(rates[1])];
  return { workers, thread, process: inProcess, ratio: inProcess / thread };
}

const machine = { node: process.versions.node, cpu: cpus()[0]?.model ?? 'unknown', cores: availableParallelism() };
console.log(
  JSON.stringify(
    {
      machine,
      hang: await hangs(9),
      policyCode: await policyCode(),
      toyLookup: [await isolation(1), await isolation(2)],
    },
    null,
    2,
  ),
);
