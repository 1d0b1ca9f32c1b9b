import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Worker } from 'node:worker_threads';
import { Piscina } from 'piscina';
import { afterEach, expect, it, vi } from 'vitest';
import exactAnswer from '../../src/verifiers/exact-answer/index.ts';
import { VerifierPool } from '../../src/verifiers/pool.ts';
import { VerifierRunner } from '../../src/verifiers/runner.ts';
import { inputOf } from './inputs.ts';

const EXACT = new URL('../../src/verifiers/exact-answer/index.ts', import.meta.url).href;
const fixture = (name: string) => new URL(`./fixtures/${name}`, import.meta.url).href;

const pools: VerifierPool[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  await Promise.all(pools.splice(0).map((pool) => pool.close()));
});
async function poolOf(verifier: string, workers: number): Promise<VerifierPool> {
  const pool = await VerifierPool.start({ verifier, workers });
  pools.push(pool);
  return pool;
}

it('scores are those of the runner, in the order of the inputs, whatever the number of workers', async () => {
  const inputs = Array.from({ length: 50 }, (_, i) =>
    inputOf({ taskId: `task-${i}`, held: { answer: String(i) }, final: i % 3 === 0 ? String(i) : `not ${i}` }),
  );
  const runner = await VerifierRunner.create(exactAnswer);
  const expected = inputs.map((input) => runner.score(input));
  runner.dispose();
  expect(expected.filter(({ success }) => success)).toHaveLength(17);
  for (const workers of [1, 2, 4]) {
    const pool = await poolOf(EXACT, workers);
    expect(await pool.score(inputs)).toEqual(expected);
  }
}, 30_000);

it('no inputs have no scores', async () => {
  expect(await (await poolOf(EXACT, 1)).score([])).toEqual([]);
});

it('inputs are cut into even parts: the canary of a full chunk does not travel alone', async () => {
  const pool = await poolOf(EXACT, 1);
  const run = vi.spyOn(Piscina.prototype, 'run');
  const sizes: number[][] = [];
  for (const count of [128, 129, 257]) {
    run.mockClear();
    expect(await pool.score(Array.from({ length: count }, () => inputOf()))).toHaveLength(count);
    sizes.push(run.mock.calls.map(([{ texts }]) => texts.length));
  }
  expect(sizes).toEqual([[128], [65, 64], [86, 86, 85]]);
});

it('case 20: a worker’s death leaves unscored what it dies of alone, ends in bounded time, and all else is scored', async () => {
  const workers: Worker[] = [];
  const remember = (worker: Worker) => workers.push(worker);
  process.on('worker', remember);
  try {
    const pool = await poolOf(fixture('slow.ts'), 1);
    // The worker is up once it has scored.
    expect(await pool.score([inputOf()])).toMatchObject([{ score: 1 }]);
    const alone = pool.score([inputOf({ held: 'busy' })]);
    expect(workers).toHaveLength(1);
    await workers[0]?.terminate();
    expect(await alone).toEqual([
      { score: null, success: false, reasons: [expect.stringMatching(/^the verifier's worker died: /)] },
    ]);
    expect(await pool.score([inputOf()])).toMatchObject([{ score: 1, success: true }]);
    const together = pool.score([inputOf(), inputOf({ held: 'busy' }), inputOf()]);
    expect(workers).toHaveLength(2);
    await workers[1]?.terminate();
    expect(await together).toMatchObject([
      { score: 1, success: true },
      // Its worker was ended from outside, once: alone it comes to what it comes to.
      { score: null, reasons: ['the verifier took longer than 2000 ms'] },
      { score: 1, success: true },
    ]);
  } finally {
    process.off('worker', remember);
  }
}, 30_000);

it('case 20: a pool whose workers cannot start says so instead of waiting', async () => {
  const fail = (worker: Worker) => process.nextTick(() => worker.emit('error', new Error('no thread left')));
  process.on('worker', fail);
  try {
    await expect(VerifierPool.start({ verifier: EXACT, workers: 2 })).rejects.toThrow(
      expect.objectContaining({
        code: 'VERIFIER_POOL_FAILED',
        message: 'No worker can be started for the verifier: no thread left',
      }),
    );
  } finally {
    process.off('worker', fail);
  }
});

type Failing = (worker: Worker) => void;
const fails: Failing = (worker) => void worker.emit('error', new Error('no thread left'));
const ends: Failing = (worker) => void worker.terminate();

/** Remembers the threads that are started from now on; each after the first fails as it starts. */
function replacingNone(failing: Failing = fails) {
  const workers: Worker[] = [];
  const remember = (worker: Worker) => {
    workers.push(worker);
    if (workers.length > 1) process.nextTick(failing, worker);
  };
  process.on('worker', remember);
  return { workers, stop: () => void process.off('worker', remember) };
}

it.each([
  ['fails', fails, 'no thread left'],
  ['ends', ends, 'it ended as it started'],
])(
  'case 20: a dead worker whose successor %s leaves everything unscored instead of waiting',
  async (_, way, why) => {
    const { workers, stop } = replacingNone(way);
    try {
      const pool = await poolOf(fixture('slow.ts'), 1);
      const dying = pool.score(Array.from({ length: 40 }, () => inputOf({ held: 'busy' })));
      await workers[0]?.terminate();
      const scores = [...(await dying), ...(await pool.score([inputOf()]))];
      expect(scores).toHaveLength(41);
      for (const score of scores) expect(score).toMatchObject({ score: null, success: false });
      expect(scores.at(-1)?.reasons).toEqual([`the verifier's worker died: ${why}`]);
    } finally {
      stop();
    }
  },
  30_000,
);

it('a worker that dies between two batches is replaced', async () => {
  const workers: Worker[] = [];
  const remember = (worker: Worker) => workers.push(worker);
  process.on('worker', remember);
  try {
    const pool = await poolOf(EXACT, 1);
    fails(workers[0]!);
    expect(await pool.score([inputOf({ held: { answer: 'a' }, final: 'a' })])).toMatchObject([{ score: 1 }]);
    expect(workers).toHaveLength(2);
  } finally {
    process.off('worker', remember);
  }
}, 30_000);

it('a pool whose last worker dies as it closes, and cannot be replaced, is closed all the same', async () => {
  const { workers, stop } = replacingNone();
  try {
    const pool = await VerifierPool.start({ verifier: fixture('slow.ts'), workers: 1 });
    const pending = pool.score([inputOf({ held: 'busy' })]);
    const closed = pool.close();
    await workers[0]?.terminate();
    await closed;
    expect(await pending).toMatchObject([{ score: null, success: false }]);
  } finally {
    stop();
  }
}, 10_000);

it('closing the pool in the middle of a batch leaves it unscored', async () => {
  const pool = await VerifierPool.start({ verifier: fixture('slow.ts'), workers: 1 });
  const pending = pool.score([inputOf({ held: 'busy' })]);
  await pool.close();
  expect(await pending).toMatchObject([{ score: null, success: false }]);
}, 30_000);

it('closing the pool does not abort the process, whatever garbage isolated-vm has left in the workers', async () => {
  const file = fileURLToPath(new URL('./fixtures/closing-pool.ts', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [file]);
  expect(stdout).toBe('600');
}, 60_000);

it('a module that is no verifier is a mistake of the person who named it', async () => {
  await expect(VerifierPool.start({ verifier: fixture('slow-verify.ts'), workers: 1 })).rejects.toThrow(
    expect.objectContaining({ code: 'VERIFIER_BROKEN', exitCode: 2 }),
  );
});
