/**
 * @module What runs in each thread of a pool whose workers own a sandbox host: the supervisor, off the thread that runs
 * tensors. What an episode that asks for tokens says is read here, as untrusted; what others come to is read by the pool.
 */
import { workerData } from 'node:worker_threads';
import { IsogymError } from '../../records/errors.ts';
import { type HostAnswer, HostSupervisor } from '../sandbox/host/supervisor.ts';
import { HostTalk } from './host-talk.ts';
import { type RolloutServiceSetup, type RolloutTask, writeSpec } from './rollout-service.ts';
import {
  type FromWorker,
  handedOver,
  type ToWorker,
  type WorkerAnswer,
  type WorkerSetup,
  type WorkerTask,
} from './work.ts';

const { setup, script, host } = workerData as WorkerSetup;
if (host === undefined)
  throw new IsogymError('INTERNAL', 'a worker that owns a sandbox host was started without its limits');
const { limits, recycleAfter, closed, workers } = host;
const supervisor = new HostSupervisor({
  service: new URL('./rollout-service.ts', import.meta.url),
  setup: { setup, script } satisfies RolloutServiceSetup,
  limits,
  recycleAfter,
});

/** Between two looks at whether the run was cancelled. */
const LOOK_MS = 20;

export default async function work(task: WorkerTask): Promise<WorkerAnswer> {
  try {
    return await answer(task);
  } catch (error) {
    if (!(error instanceof IsogymError) || error.code === 'INTERNAL') throw error;
    const { code, message, hint, exitCode } = error;
    return { failed: { code, message, exitCode, ...(hint === undefined ? {} : { hint }) } };
  }
}

/** By this name come tasks of which a second may lie ready: see the pool. */
export const shared = work;

async function answer(task: WorkerTask): Promise<WorkerAnswer> {
  switch (task.kind) {
    case 'load':
      await supervisor.start();
      return { episodes: [] };
    case 'close':
      await close();
      return { episodes: [] };
    case 'act': {
      const { packed, stop } = task;
      const body: RolloutTask = { kind: 'act', packed, policy: writeSpec(task.policy), cancelled: isSet(stop) };
      const bytes = Buffer.from(task.requests);
      const answer = await cancelled(stop, supervisor.run(body, { weight: task.count, bytes }));
      if ('death' in answer) return answer;
      const { result } = answer;
      if (!(result instanceof Uint8Array)) return { episodes: result };
      // In a buffer of its own: see `FrameReader`.
      return handedOver(result as Uint8Array<ArrayBuffer>);
    }
    case 'converse': {
      try {
        const answer = await cancelled(task.stop, converse(task));
        return 'death' in answer ? answer : { episodes: [] };
      } finally {
        task.port.close();
      }
    }
  }
}

async function converse(task: Extract<WorkerTask, { kind: 'converse' }>): Promise<HostAnswer> {
  const { name, version, bounds, port, stop } = task;
  const talk = new HostTalk(name, bounds);
  port.on('message', (messages: ToWorker) => {
    talk.told(messages);
    supervisor.say(messages, { weight: messages.filter((message) => 'begin' in message).length });
  });
  const body: RolloutTask = { kind: 'converse', name, version, cancelled: isSet(stop) };
  const heard = (said: unknown) => port.postMessage(talk.heard(said) satisfies FromWorker);
  return supervisor.run(body, { weight: 0, heard });
}

/** Tells the host of a run that is cancelled while it works. */
async function cancelled<T>(stop: Int32Array, work: Promise<T>): Promise<T> {
  const look = setInterval(() => {
    if (isSet(stop)) supervisor.cancel();
  }, LOOK_MS);
  try {
    return await work;
  } finally {
    clearInterval(look);
  }
}

function isSet(stop: Int32Array): boolean {
  return Atomics.load(stop, 0) === 1;
}

/** Ends its host, and then waits for the other workers, so that each of them takes one such task. */
async function close(): Promise<void> {
  await supervisor.close();
  let count = Atomics.add(closed, 0, 1) + 1;
  Atomics.notify(closed, 0);
  while (count < workers) {
    const change = Atomics.waitAsync(closed, 0, count);
    if (change.async) await change.value;
    count = Atomics.load(closed, 0);
  }
}
