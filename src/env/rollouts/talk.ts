/** @module Episodes that ask for their tokens over a channel: the worker's or the host's end of a conversation. */
import type { TokenRequest } from '../../policy/token-policy.ts';
import type { StopSignal } from '../episode.ts';
import type { TokenAnswer } from './batcher.ts';
import type { RolloutRunner } from './rollout-runner.ts';
import type { FromWorker, ToWorker } from './work.ts';

export interface Channel {
  post(messages: FromWorker): void;
  heard(listener: (messages: ToWorker) => void): void;
}

/** Each episode begins when it is told to, and goes through the channel when it has ended; returns once it is told that no more will. One message a turn of the event loop. */
export async function converseOver(
  channel: Channel,
  runner: RolloutRunner,
  { name, version }: { readonly name: string; readonly version: number },
  signal: StopSignal,
): Promise<void> {
  const waiting = new Map<string, PromiseWithResolvers<TokenAnswer>>();
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

  const over = Promise.withResolvers<void>();
  // The channel is one of those that are open, until it is over.
  let open = 1;
  const close = () => {
    if (--open === 0) over.resolve();
  };
  channel.heard((messages) => {
    for (const message of messages) {
      if ('over' in message) close();
      else if ('begin' in message) {
        open++;
        runner
          .converse(message.begin, { name, version, ask }, signal)
          .then((ended) => post({ ended }))
          .then(close, over.reject);
      } else {
        const asked = waiting.get(message.episodeId);
        waiting.delete(message.episodeId);
        if ('reply' in message) asked?.resolve(message.reply);
        else asked?.reject(new Error(message.error));
      }
    }
  });
  channel.post([{ hears: true }]);
  await over.promise;
  flush();
}
