/** @module What runs in each thread of the pool: one runner, and the two kinds of work that it is sent. */
import { type MessagePort, workerData } from 'node:worker_threads';
import type { TokenReply, TokenRequest } from '../policy/token-policy.ts';
import type { Episode } from '../records/trajectory.ts';
import type { StopSignal } from './episode.ts';
import { RolloutRunner } from './rollout-runner.ts';
import type { InsideSpec, RolloutRequest, RolloutSetup } from './rollouts.ts';

/** What every worker is started with. */
export interface WorkerSetup {
  readonly setup: RolloutSetup;
  /** The bundled world. */
  readonly script: string;
}

/** `stop` is shared memory: [0] is 1 once the run is cancelled, and the worker sees it in the midst of its work. */
export type WorkerTask =
  | { readonly kind: 'load' }
  | {
      readonly kind: 'act';
      readonly requests: readonly RolloutRequest[];
      readonly policy: InsideSpec;
      readonly stop: Int32Array;
    }
  | {
      readonly kind: 'converse';
      readonly requests: readonly RolloutRequest[];
      readonly name: string;
      readonly version: number;
      readonly port: MessagePort;
      readonly stop: Int32Array;
    };

/** From a worker: one message a turn of its event loop, with all that its episodes said in it. */
export type FromWorker = readonly ({ readonly ask: TokenRequest } | { readonly ended: Episode })[];
/** To a worker. */
export type ToWorker = readonly (
  | { readonly episodeId: string; readonly reply: TokenReply }
  | { readonly episodeId: string; readonly error: string }
)[];

let runner: Promise<RolloutRunner> | undefined;

/** `act` gives its episodes back, in order; those of `converse` have gone through its port, one by one, by the time it returns. */
export default async function work(task: WorkerTask): Promise<readonly Episode[]> {
  const { setup, script } = workerData as WorkerSetup;
  runner ??= RolloutRunner.create(setup, script);
  const loaded = await runner;
  switch (task.kind) {
    case 'load':
      return [];
    case 'act':
      return loaded.act(task.requests, task.policy, stopSignal(task.stop));
    case 'converse':
      await converse(loaded, task);
      return [];
  }
}

async function converse(loaded: RolloutRunner, task: Extract<WorkerTask, { kind: 'converse' }>): Promise<void> {
  const { requests, name, version, port, stop } = task;
  const waiting = new Map<string, PromiseWithResolvers<TokenReply>>();
  port.on('message', (messages: ToWorker) => {
    for (const message of messages) {
      const asked = waiting.get(message.episodeId);
      waiting.delete(message.episodeId);
      if ('reply' in message) asked?.resolve(message.reply);
      else asked?.reject(new Error(message.error));
    }
  });

  let outbox: FromWorker[number][] = [];
  const flush = () => {
    if (outbox.length > 0) port.postMessage(outbox satisfies FromWorker);
    outbox = [];
  };
  const post = (message: FromWorker[number]) => {
    if (outbox.push(message) === 1) setImmediate(flush);
  };
  const ask = (request: TokenRequest) => {
    const asked = Promise.withResolvers<TokenReply>();
    waiting.set(request.episodeId, asked);
    post({ ask: request });
    return asked.promise;
  };

  await loaded.converse(
    requests,
    { name, version, ask, ended: (episode) => post({ ended: episode }) },
    stopSignal(stop),
  );
  flush();
  port.close();
}

function stopSignal(stop: Int32Array): StopSignal {
  return {
    get aborted() {
      return Atomics.load(stop, 0) === 1;
    },
  };
}
