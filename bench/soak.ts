/**
 * @module Does memory stay flat? `npx node bench/soak.ts [--episodes 100000] [--minutes 0] [--workers 2] [--isolation process]`:
 * episodes of toy-lookup, judged, in batches of 1,000 that are dropped, until both the number and the time are reached.
 * Prints resident memory of this process and its hosts [MiB] on the way. Fails where the most that all of them held together in the
 * last 10,000 episodes (or a tenth, where fewer than 100,000 are run) is more than 10 % above the most of the first so many, and
 * where an episode was judged wrong.
 */
import { parseArgs } from 'node:util';
import type { Isolation } from '../src/env/environment.ts';
import { importEnvironment } from '../src/env/load.ts';
import { RolloutPool } from '../src/env/rollouts/pool.ts';
import { residentMiBOf } from '../src/env/sandbox/host/process.ts';
import { now } from '../src/io/clock.ts';
import { children } from '../src/io/cpu-time.ts';
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
if (!(episodes >= 2 * BATCH && minutes >= 0)) {
  throw new Error(
    `expected --episodes of at least ${2 * BATCH} and --minutes of at least 0, found ${values.episodes}, ${values.minutes}`,
  );
}

function residentMiB(): { readonly own: number; readonly hosts: readonly number[] } {
  return { own: process.memoryUsage().rss / 2 ** 20, hosts: children().map((pid) => residentMiBOf(Number(pid)) ?? 0) };
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
let done = 0;
/** After each batch: of this process and its hosts together. Hosts are replaced as they age, so the most within a while is compared. */
const totals: number[] = [];
let wrong = 0;
for (let batch = 0; done < episodes || now() - start < minutes * 60_000; batch++) {
  const policy = { kind: 'scripted', script: batch % 2 === 0 ? 'oracle' : 'survey' } as const;
  const judged = await collect(rig, groupRequests(tasks, 1, 'soak', batch), tasks, policy);
  wrong += judged.filter(({ verdict }) => !verdict.success).length;
  done += BATCH;
  const { own, hosts } = residentMiB();
  totals.push(own + hosts.reduce((sum, one) => sum + one, 0));
  if (batch % Math.ceil(episodes / BATCH / 10) === 0) {
    console.error(
      `${done} episodes, ${((now() - start) / 1000).toFixed(0)} s: ${own.toFixed(0)} MiB, hosts ${hosts.map((one) => one.toFixed(0)).join(', ')}`,
    );
  }
}
await Promise.all([rollouts.close(), verifiers.close()]);
const few = Math.min(10, Math.ceil(totals.length / 10));
const early = Math.max(...totals.slice(0, few));
const late = Math.max(...totals.slice(-few));
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
// Not `growth > 0.1`, which a growth that is no number would pass.
if (!(growth <= 0.1) || wrong > 0) process.exitCode = 1;
