/**
 * @module Does memory stay flat? `npx node bench/soak.ts [--episodes 100000] [--minutes 0] [--workers 2] [--isolation process]`:
 * episodes of toy-lookup, judged, in batches of 1,000 that are dropped, until both the number and the time are reached.
 * Prints resident memory of this process and its hosts [MiB] on the way, and fails where the end is more than 10 % above
 * what it was after 10,000 (or after a tenth of them, where fewer are run).
 */
import { readdirSync, readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { Isolation } from '../src/env/environment.ts';
import { importEnvironment } from '../src/env/load.ts';
import { RolloutPool } from '../src/env/pool.ts';
import { residentMiBOf } from '../src/env/sandbox/host/process.ts';
import { now } from '../src/io/clock.ts';
import { examine } from '../src/io/machine.ts';
import { moduleUrl } from '../src/io/modules.ts';
import { collect, groupRequests } from '../src/train/collect.ts';
import { importVerifier } from '../src/verifiers/load.ts';
import { VerifierPool } from '../src/verifiers/pool.ts';

const BATCH = 1000;
const { values } = parseArgs({
  options: {
    episodes: { type: 'string', default: '100000' },
    minutes: { type: 'string', default: '0' },
    workers: { type: 'string', default: '2' },
    isolation: { type: 'string', default: 'process' },
  },
});
const episodes = Number(values.episodes);
const minutes = Number(values.minutes);
const isolation = values.isolation as Isolation;

/** Of this process and of each host that its threads have started: hosts are replaced as they age, so the largest sum counts. */
function residentMiB(): { readonly own: number; readonly hosts: readonly number[] } {
  const hosts = readdirSync('/proc/self/task').flatMap((thread) =>
    readFileSync(`/proc/self/task/${thread}/children`, 'utf8').split(' ').filter(Boolean),
  );
  return { own: process.memoryUsage().rss / 2 ** 20, hosts: hosts.map((pid) => residentMiBOf(Number(pid)) ?? 0) };
}

const environmentUrl = moduleUrl('environment', 'toy-lookup').href;
const verifierUrl = moduleUrl('verifier', 'exact-answer').href;
const environment = await importEnvironment(environmentUrl);
const verifier = await importVerifier(verifierUrl);
const tasks = Array.from({ length: BATCH }, (_, i) => environment.task('soak', i, { values: 99 }));
const verifiers = await VerifierPool.start({ verifier: verifierUrl, workers: 1 });
const setup = { environment: environmentUrl, options: { values: 99 }, maxSteps: 10, isolation };
const rollouts = await RolloutPool.start({ ...setup, workers: Number(values.workers) });
const rig = { rollouts, verifiers, verifier, stepPenalty: 0.05 };

const start = now();
const mark = Math.min(10_000, episodes / 10);
let done = 0;
let early = Number.NaN;
let late = Number.NaN;
let wrong = 0;
for (let batch = 0; done < episodes || now() - start < minutes * 60_000; batch++) {
  const policy = { kind: 'scripted', script: batch % 2 === 0 ? 'oracle' : 'survey' } as const;
  const judged = await collect(rig, groupRequests(tasks, 1, 'soak', batch), tasks, policy);
  wrong += judged.filter(({ verdict }) => !verdict.success).length;
  done += BATCH;
  const { own, hosts } = residentMiB();
  late = own;
  if (done === mark) early = own;
  if (done === mark || done % (episodes / 10) === 0) {
    console.error(
      `${done} episodes, ${((now() - start) / 1000).toFixed(0)} s: ${own.toFixed(0)} MiB, hosts ${hosts.map((one) => one.toFixed(0)).join(', ')}`,
    );
  }
}
await Promise.all([rollouts.close(), verifiers.close()]);
const growth = late / early - 1;
console.log(
  JSON.stringify({
    machine: examine(),
    isolation,
    workers: Number(values.workers),
    episodes: done,
    seconds: (now() - start) / 1000,
    earlyMiB: early,
    lateMiB: late,
    growth,
    wrong,
  }),
);
if (growth > 0.1 || wrong > 0) process.exitCode = 1;
