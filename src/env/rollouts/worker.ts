/** @module What runs in each thread of a pool whose workers run the worlds themselves: one runner, and the kinds of work that it is sent. */
import { workerData } from 'node:worker_threads';
import type { StopSignal } from '../episode.ts';
import { RolloutRunner } from './rollout-runner.ts';
import { readRequests } from './rollouts.ts';
import { converseOver } from './talk.ts';
import { handedOver, type ToWorker, type WorkerAnswer, type WorkerSetup, type WorkerTask } from './work.ts';

let runner: Promise<RolloutRunner> | undefined;

export default async function work(task: WorkerTask): Promise<WorkerAnswer> {
  const { setup, script } = workerData as WorkerSetup;
  runner ??= RolloutRunner.create(setup, script);
  const loaded = await runner;
  switch (task.kind) {
    case 'load':
      return { episodes: [] };
    case 'close':
      await loaded.close();
      return { episodes: [] };
    case 'act': {
      const requests = readRequests(task.requests);
      const signal = stopSignal(task.stop);
      return task.packed
        ? handedOver(await loaded.actPacked(requests, task.policy, signal))
        : { episodes: await loaded.act(requests, task.policy, signal) };
    }
    case 'converse': {
      const { port, stop } = task;
      const channel = {
        post: port.postMessage.bind(port),
        heard: (listener: (messages: ToWorker) => void) => port.on('message', listener),
      };
      try {
        await converseOver(channel, loaded, task, stopSignal(stop));
      } finally {
        port.close();
      }
      return { episodes: [] };
    }
  }
}

/** A flag in shared memory, as a signal. */
export function stopSignal(stop: Int32Array): StopSignal {
  return {
    get aborted() {
      return Atomics.load(stop, 0) === 1;
    },
  };
}
