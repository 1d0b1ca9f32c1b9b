/**
 * @module Who waits for whom in a run: what a learner in a process of its own could save at most. Trains by a config and takes the time
 * of every call of the tensor library that blocks this process, and how long each worker was idle meanwhile.
 * `node bench/waiting.ts [--config toy-lookup.yaml] [--backend native] [--workers 2] [override…]`: prints one JSON object.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { type EventLoopUtilization, performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import type { Worker } from 'node:worker_threads';
import { loadConfig } from '../src/io/config-file.ts';
import { examine } from '../src/io/machine.ts';
import { TransformerPolicy } from '../src/policy/generate.ts';
import { Learner } from '../src/train/learner.ts';
import { train } from '../src/train/run.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    config: { type: 'string', default: 'toy-lookup.yaml' },
    backend: { type: 'string', default: 'native' },
    workers: { type: 'string', default: '2' },
  },
});

/** The threads of the pool of rollouts come first, then the verifier's. */
const threads: Worker[] = [];
process.on('worker', (worker) => threads.push(worker));
const rollouts = () => threads.slice(0, Number(values.workers));

interface Total {
  calls: number;
  ms: number;
  /** Of the rollouts' workers, the mean: how long each was idle meanwhile. Null outside rollouts, when they have no task at all. */
  workerIdleMs: number | null;
}
const totals = new Map<string, Total>();

/** Takes the time of a method that computes tensors; `kind` says where it counts, `rolling` whether rollouts are under way. */
function timed<T extends object, K extends keyof T>(prototype: T, method: K, kind: string, rolling: boolean): void {
  const real = prototype[method] as (this: T, ...args: unknown[]) => Promise<unknown>;
  const total: Total = { calls: 0, ms: 0, workerIdleMs: rolling ? 0 : null };
  totals.set(kind, total);
  prototype[method] = async function (this: T, ...args: unknown[]) {
    const before = rollouts().map((worker) => worker.performance.eventLoopUtilization());
    const start = performance.now();
    try {
      return await real.apply(this, args);
    } finally {
      total.calls++;
      total.ms += performance.now() - start;
      const idleMs = rollouts().reduce((sum, worker, i) => sum + idle(worker, before[i]), 0);
      if (total.workerIdleMs !== null) total.workerIdleMs += idleMs / Number(values.workers);
    }
  } as T[K];
}

function idle(worker: Worker, since: EventLoopUtilization | undefined): number {
  const now = worker.performance.eventLoopUtilization();
  return since === undefined ? 0 : now.idle - since.idle;
}

interface Timing {
  readonly rolloutSeconds: number;
  readonly updateSeconds: number;
  readonly waitingShare: number;
}

function parsed(line: string): Timing {
  return JSON.parse(line) as Timing;
}

timed(TransformerPolicy.prototype, 'tick', 'decoding', true);
timed(Learner.prototype, 'reinforce', 'updates', false);
timed(Learner.prototype, 'supervise', 'warmStart', false);

const folder = mkdtempSync(join(tmpdir(), 'isogym-waiting-'));
try {
  const overrides = [`backend=${values.backend}`, `workers=${values.workers}`, `runs.dir=${folder}`, ...positionals];
  const { config, where } = loadConfig({ file: values.config, overrides, cwd: process.cwd() });
  const loadBefore = loadavg()[0];
  const start = performance.now();
  const mainBefore = performance.eventLoopUtilization();
  const outcome = await train({ config, where });
  if (outcome.interrupted) throw new Error('interrupted');
  const trained = outcome.summary.policies.find(({ name }) => name === 'trained');
  const [run = ''] = readdirSync(folder);
  const iterations = readFileSync(join(folder, run, 'timings.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map(parsed);
  const sum = (of: (timing: Timing) => number) => iterations.reduce((total, timing) => total + of(timing), 0);
  const wallMs = performance.now() - start;
  const main = performance.eventLoopUtilization(mainBefore);
  const tensors = [...totals.values()].reduce((sum, { ms }) => sum + ms, 0);
  console.log(
    JSON.stringify(
      {
        machine: examine(),
        load: { before: loadBefore, after: loadavg()[0] },
        backend: values.backend,
        workers: Number(values.workers),
        heldOutSuccess: trained?.success.mean,
        wallMs,
        iterations: {
          rolloutSeconds: sum(({ rolloutSeconds }) => rolloutSeconds),
          // No row was written, as requests were owed.
          waitingSeconds: sum(({ rolloutSeconds, waitingShare }) => rolloutSeconds * waitingShare),
          updateSeconds: sum(({ updateSeconds }) => updateSeconds),
        },
        tensorCalls: Object.fromEntries(totals),
        // The rest of this process's time: its event loop waits for others, or does what is no tensor's.
        mainIdleMs: main.idle,
        mainOtherMs: wallMs - tensors - main.idle,
      },
      null,
      2,
    ),
  );
} finally {
  rmSync(folder, { recursive: true });
}
