import type { MessagePort } from 'node:worker_threads';
import { expect, it } from 'vitest';
import { Conversation, type SendShare } from '../../../src/env/rollouts/conversation.ts';
import type { RolloutRequest } from '../../../src/env/rollouts/rollouts.ts';
import type { Schedule } from '../../../src/env/rollouts/schedule.ts';
import type { FromWorker, ToWorker } from '../../../src/env/rollouts/work.ts';
import type { Death } from '../../../src/env/sandbox/host/protocol.ts';
import { Transcript } from '../../../src/env/transcript.ts';
import type { TokenPolicy, TokenReply } from '../../../src/policy/token-policy.ts';
import { IsogymError } from '../../../src/records/errors.ts';
import type { Episode } from '../../../src/records/trajectory.ts';
import { atOnce, requestOf } from '../../fixtures/rollouts.ts';

const DEATH: Death = { kind: 'out-of-memory', message: 'its heap was full' };
const reply: TokenReply = { ids: [7], logprobs: [-1], cutOff: false };
const requests = [0, 1, 2, 3].map((rollout) => requestOf({ id: 't', prompt: 'Try.', public: {} }, rollout));
const named = (end: number) => requests[end]!.id;

function policy(): TokenPolicy & { readonly asked: string[]; readonly released: string[] } {
  const asked: string[] = [];
  const released: string[] = [];
  const tick = atOnce((batch) => {
    asked.push(...batch.map(({ episodeId }) => episodeId));
    return batch.map(() => reply);
  });
  return { name: 'one-token', version: 1, asked, released, tick, release: (ids) => released.push(...ids) };
}

interface Worker {
  /** What an episode asks with at each turn; a turn without one is its end. */
  readonly context?: (id: string, turn: number) => readonly number[] | undefined;
  /** Dies once so many answers have come. */
  readonly diesAfter?: number;
}

/** A worker in this thread. It is over when each of its episodes has ended, or as it dies. One without a step is cut off. */
function work(share: readonly RolloutRequest[], port: MessagePort, o: Worker): Promise<Death | undefined> {
  const { context = (_, turn) => (turn < 2 ? [turn] : undefined), diesAfter } = o;
  const { promise, resolve } = Promise.withResolvers<Death | undefined>();
  const records = new Map(share.map((request) => [request.id, new Transcript(request, 'one-token')]));
  let answers = 0;
  let left = share.length;
  const say = (messages: FromWorker) => port.postMessage(messages);
  const end = (episode: Episode) => {
    say([{ ended: episode }]);
    if (--left === 0) resolve(undefined);
  };
  const next = (episodeId: string, record: Transcript) => {
    const newIds = context(episodeId, record.steps.length);
    if (newIds === undefined)
      return end(record.steps.length > 0 ? record.end('final', { final: 'ok' }) : record.end('max-tokens'));
    record.give(newIds);
    say([{ ask: { episodeId, newIds, maxTokens: 9, seed: episodeId } }]);
  };
  port.on('message', (messages: ToWorker) => {
    for (const message of messages) {
      const episodeId = 'begin' in message ? message.begin : message.episodeId;
      const record = records.get(episodeId)!;
      if (!('begin' in message)) {
        if (++answers === diesAfter) return resolve(DEATH);
        if ('error' in message) {
          end(record.end('policy-failure', { detail: message.error }));
          continue;
        }
        if ('halt' in message.reply) {
          end(record.end(message.reply.halt, { detail: message.reply.detail }));
          continue;
        }
        const { ids, logprobs } = message.reply;
        record.step({ text: '', calls: [] }, [], record.sample({ ids, logprobs }, 1));
      }
      next(episodeId, record);
    }
  });
  say([{ hears: true }]);
  return promise.finally(() => port.close());
}

async function converse(send: SendShare, shares = [requests], schedule: Schedule = { live: 9 }) {
  const acting = policy();
  const notes: string[] = [];
  const conversation = new Conversation({ kind: 'tokens', policy: acting, schedule }, requests, send, {
    cancelled: () => false,
    notice: (note) => notes.push(note),
  });
  await conversation.run(shares);
  return { acting, notes, stops: requests.map(({ id }) => conversation.episode(id).stop), conversation };
}

it('where one share fails for a reason outside its episodes, the others come to an end, and so does the run, with that reason', async () => {
  const over: string[] = [];
  const send: SendShare = async (share, port) => {
    if (share[0] === requests[0]) {
      port.close();
      throw new IsogymError('HOST_FAILED', 'No sandbox host can be started.');
    }
    // Of which one lives, and the other is still in the queue.
    const death = await work(share, port, { context: (_, turn) => [turn] });
    over.push(...share.map(({ id }) => id));
    return death;
  };
  const shares = [requests.slice(0, 2), requests.slice(2)];
  await expect(converse(send, shares, { live: 3 })).rejects.toMatchObject({ code: 'HOST_FAILED' });
  expect(over).toEqual([named(2), named(3)]);
});

it('an episode that asks for something else when it is told again gets no answer to what it had asked: it has failed, alone', async () => {
  let talks = 0;
  const { stops, acting, conversation } = await converse((share, port) => {
    talks++;
    // All of them have been answered twice by then. Alone, it is the first that takes its worker down.
    if (talks <= 2) return work(share, port, { diesAfter: talks === 1 ? 5 : 1 });
    // Its second context has come to something else, as where a tool timed out the first time alone.
    return work(share, port, {
      context: (id, turn) => (turn < 2 ? [turn === 1 && id === named(2) ? 99 : turn] : undefined),
    });
  });
  expect(stops).toEqual(['sandbox-failure', 'final', 'sandbox-failure', 'final']);
  expect(conversation.episode(named(0)).failure).toBe('out-of-memory');
  expect(conversation.episode(named(2))).toMatchObject({
    failure: 'died',
    stopDetail: expect.stringContaining('it came to something else before action 2'),
  });
  // Nobody was asked again.
  expect(acting.asked).toHaveLength(8);
});

it('those that had not begun when their worker died are tried once more, which is said', async () => {
  let talks = 0;
  const dying = (deaths: number): SendShare => {
    talks = 0;
    return async (share, port) => {
      if (++talks > deaths) return work(share, port, {});
      port.close();
      return DEATH;
    };
  };
  // The batcher begins as many as live; none do before the first talk is over where it ends at once.
  const queued: Schedule = { live: 2 };
  const shares = [requests.slice(0, 2), requests.slice(2)];
  const send: SendShare = (share, port) => (share[0] === requests[0] ? work(share, port, {}) : dies(share, port));
  let dies = dying(1);
  const once = await converse(send, shares, queued);
  expect(once.stops).toEqual(['final', 'final', 'final', 'final']);
  expect(once.notes).toEqual([
    `2 episodes, ${named(2)} the first of them, had not begun when their worker ended (its heap was full): they are tried once more.`,
  ]);
  dies = dying(9);
  const twice = await converse(send, shares, queued);
  expect(twice.stops).toEqual(['final', 'final', 'sandbox-failure', 'sandbox-failure']);
  expect(twice.notes).toHaveLength(1);
});

it('an episode that was cut off before its first step does not count among those that are enough', async () => {
  const context = (id: string, turn: number) => (turn < (id === named(0) ? 0 : 2) ? [turn] : undefined);
  const { stops } = await converse((share, port) => work(share, port, { context }), [requests], { live: 9, enough: 1 });
  // Else the others would be stragglers at their first question.
  expect(stops).toEqual(['max-tokens', 'final', 'final', 'final']);
});
