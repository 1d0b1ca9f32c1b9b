/** @module Episodes that ask for their tokens over a channel: the worker's or the host's end of a conversation. */
import type { TokenRequest } from '../../policy/token-policy.ts';
import type { StopSignal } from '../episode.ts';
import type { TokenAnswer } from './batcher.ts';
import type { RolloutRunner } from './rollout-runner.ts';
import type { RolloutRequest } from './rollouts.ts';
import type { FromWorker, ToWorker } from './work.ts';

export interface Channel {
  post(messages: FromWorker): void;
  heard(listener: (messages: ToWorker) => void): void;
}

/** Each episode begins when it is told to; by the time it returns, each has gone through the channel. One message a turn of the event loop. */
export async function converseOver(
  channel: Channel,
  runner: RolloutRunner,
  task: { readonly requests: readonly RolloutRequest[]; readonly name: string; readonly version: number },
  signal: StopSignal,
): Promise<void> {
  const waiting = new Map<string, PromiseWithResolvers<TokenAnswer>>();
  const beginning = new Map(task.requests.map(({ id }) => [id, Promise.withResolvers<void>()]));
  channel.heard((messages) => {
    for (const message of messages) {
      if ('begin' in message) {
        beginning.get(message.begin)?.resolve();
        continue;
      }
      const asked = waiting.get(message.episodeId);
      waiting.delete(message.episodeId);
      if ('reply' in message) asked?.resolve(message.reply);
      else asked?.reject(new Error(message.error));
    }
  });

  channel.post([{ hears: true }]);

  let outbox: FromWorker[number][] = [];
  const flush = () => {
    if (outbox.length > 0) channel.post(outbox);
    outbox = [];
  };
  const post = (message: FromWorker[number]) => {
    if (outbox.push(message) === 1) setImmediate(flush);
  };
  const ask = (request: TokenRequest) => {
    const asked = Promise.withResolvers<TokenAnswer>();
    waiting.set(request.episodeId, asked);
    post({ ask: request });
    return asked.promise;
  };

  const begun = async (episodeId: string) => beginning.get(episodeId)?.promise;
  const { requests, name, version } = task;
  await runner.converse(requests, { name, version, begun, ask, ended: (episode) => post({ ended: episode }) }, signal);
  flush();
}
