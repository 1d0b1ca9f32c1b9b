import type { MessagePort } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { Conversation, type SendTalk } from '../../../src/env/rollouts/conversation.ts';
import type { Schedule } from '../../../src/env/rollouts/schedule.ts';
import type { FromWorker, ToWorker } from '../../../src/env/rollouts/work.ts';
import type { Death } from '../../../src/env/sandbox/host/protocol.ts';
import { Transcript } from '../../../src/env/transcript.ts';
import type { TokenPolicy, TokenReply } from '../../../src/policy/token-policy.ts';
import { IsogymError } from '../../../src/records/errors.ts';
import type { Episode } from '../../../src/records/trajectory.ts';
import { atOnce, requestOf } from '../../fixtures/rollouts.ts';

const DEATH: Death = { kind: 'out-of-memory', message: 'its heap was full' };
/** What each of its replies reads as; its episodes go on all the same. */
const ACTION = { text: 'answer ok', calls: [], final: 'ok' };
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
  readonly begins?: (id: string) => void;
}

/** A worker in this thread. It is over when it is told so and each of its episodes has ended, or as it dies. One without a step is cut off. */
function work(port: MessagePort, o: Worker = {}): Promise<Death | undefined> {
  const { context = (_, turn) => (turn < 2 ? [turn] : undefined), diesAfter, begins = () => {} } = o;
  const { promise, resolve } = Promise.withResolvers<Death | undefined>();
  const records = new Map<string, Transcript>();
  let answers = 0;
  // The talk itself is one of those that are open.
  let open = 1;
  const say = (messages: FromWorker) => port.postMessage(messages);
  const close = () => {
    if (--open === 0) resolve(undefined);
  };
  const end = (episode: Episode) => {
    say([{ ended: episode }]);
    close();
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
      if ('over' in message) {
        close();
        continue;
      }
      if ('begin' in message) {
        open++;
        const { id } = message.begin;
        begins(id);
        const record = new Transcript(message.begin, 'one-token');
        records.set(id, record);
        next(id, record);
        continue;
      }
      const { episodeId } = message;
      const record = records.get(episodeId)!;
      if (++answers === diesAfter) return resolve(DEATH);
      if ('error' in message) end(record.end('policy-failure', { detail: message.error }));
      else if ('halt' in message.reply) end(record.end(message.reply.halt, { detail: message.reply.detail }));
      else {
        const { ids, logprobs } = message.reply;
        record.step(ACTION, [], record.sample({ ids, logprobs }, 1));
        next(episodeId, record);
      }
    }
  });
  say([{ hears: true }]);
  return promise.finally(() => port.close());
}

async function converse(send: SendTalk, workers = 1, schedule: Schedule = { live: 9 }, given = requests) {
  const acting = policy();
  const notes: string[] = [];
  const conversation = new Conversation({ kind: 'tokens', policy: acting, schedule }, given, send, {
    cancelled: () => false,
    read: () => ACTION,
    notice: (note) => notes.push(note),
  });
  await conversation.run(workers);
  return { acting, notes, stops: requests.map(({ id }) => conversation.episode(id).stop), conversation };
}

it('who begins does so in the worker where the fewest live, so that no worker is left without while another has two', async () => {
  const begun: string[][] = [[], []];
  let talks = 0;
  // The first of the four goes on for longer than all of the others.
  const context = (id: string, turn: number) => (turn < (id === named(0) ? 9 : 2) ? [turn] : undefined);
  const send: SendTalk = (port) => {
    const mine = begun[talks++]!;
    return work(port, { context, begins: (id) => mine.push(id) });
  };
  const { stops } = await converse(send, 2, { live: 2 });
  expect(stops).toEqual(['final', 'final', 'final', 'final']);
  expect(begun).toEqual([[named(0)], [named(1), named(2), named(3)]]);
});

it('where one worker fails for a reason outside its episodes, the others come to an end, and so does the run, with that reason', async () => {
  const begun: string[] = [];
  let ended = false;
  let talks = 0;
  const send: SendTalk = async (port) => {
    if (++talks === 2) {
      port.close();
      throw new IsogymError('HOST_FAILED', 'No sandbox host can be started.');
    }
    // Of which the last is still in the queue.
    const death = await work(port, { context: (_, turn) => [turn], begins: (id) => begun.push(id) });
    ended = true;
    return death;
  };
  await expect(converse(send, 2, { live: 3 })).rejects.toMatchObject({ code: 'HOST_FAILED' });
  expect(ended).toBe(true);
  expect(begun).not.toContain(named(3));
});

it('where two workers fail so, the others are told once that no more will begin: told twice, they would leave one behind', async () => {
  let told = 0;
  let talks = 0;
  const heard = Promise.withResolvers<void>();
  const send: SendTalk = async (port) => {
    if (++talks > 1) {
      port.close();
      await heard.promise;
      throw new IsogymError('HOST_FAILED', 'No sandbox host can be started.');
    }
    port.on('message', (messages: ToWorker) => {
      told += messages.filter((message) => 'over' in message).length;
    });
    return work(port, { context: (_, turn) => [turn], begins: () => heard.resolve() });
  };
  await expect(converse(send, 3)).rejects.toMatchObject({ code: 'HOST_FAILED' });
  expect(told).toBe(1);
});

it('an episode that asks for something else when it is told again gets no answer to what it had asked: it has failed, alone', async () => {
  let talks = 0;
  const { stops, acting, conversation } = await converse((port) => {
    talks++;
    // All of them have been answered twice by then. Alone, it is the first that takes its worker down.
    if (talks <= 2) return work(port, { diesAfter: talks === 1 ? 5 : 1 });
    // Its second context has come to something else, as where a tool timed out the first time alone.
    return work(port, {
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

describe('a worker that ends while no episode lives in it', () => {
  /** The second worker dies so often, before it hears. */
  const dying = (deaths: number): SendTalk => {
    let talks = 0;
    let died = 0;
    return async (port) => {
      if (++talks === 1 || died === deaths) return work(port);
      died++;
      port.close();
      return DEATH;
    };
  };
  const queued: Schedule = { live: 1 };
  const note = 'A worker ended while no episode lived in it (its heap was full): it is replaced, once.';

  // Also where some were to begin in it.
  const schedules = [queued, { live: 9 }];

  it.each(schedules)('is replaced, which is said: %o', async (schedule) => {
    const { stops, notes } = await converse(dying(1), 2, schedule);
    expect(stops).toEqual(['final', 'final', 'final', 'final']);
    expect(notes).toEqual([note]);
  });

  it.each(schedules)('twice leaves its part to the others: %o', async (schedule) => {
    const { stops, notes } = await converse(dying(2), 2, schedule);
    expect(stops).toEqual(['final', 'final', 'final', 'final']);
    expect(notes).toEqual([note]);
  });

  it('and is the last has all the rest fail', async () => {
    let talks = 0;
    // Its first episode takes the worker down, and then nothing comes up.
    const { stops, conversation } = await converse(
      async (port) => {
        if (++talks === 1) return work(port, { diesAfter: 1 });
        port.close();
        return { kind: 'died', message: 'nothing comes up' };
      },
      1,
      queued,
    );
    expect(stops).toEqual(['sandbox-failure', 'sandbox-failure', 'sandbox-failure', 'sandbox-failure']);
    expect(conversation.episode(named(0)).stopDetail).toBe('its heap was full');
    expect(conversation.episode(named(3)).stopDetail).toBe('nothing comes up');
  });
});

it('a request that cannot be copied to a worker is a failure of its own', async () => {
  const task = { id: 't', prompt: 'Try.', public: { run: () => {} } as never };
  const { stops, conversation } = await converse(work, 1, { live: 9 }, [requestOf(task, 4), ...requests]);
  expect(stops).toEqual(['final', 'final', 'final', 'final']);
  expect(conversation.episode(requestOf(task, 4).id)).toMatchObject({
    stop: 'sandbox-failure',
    stopDetail: expect.stringContaining('could not be cloned'),
  });
});

it('an episode that was cut off before its first step does not count among those that are enough', async () => {
  const context = (id: string, turn: number) => (turn < (id === named(0) ? 0 : 2) ? [turn] : undefined);
  const { stops } = await converse((port) => work(port, { context }), 1, { live: 9, enough: 1 });
  // Else the others would be stragglers at their first question.
  expect(stops).toEqual(['max-tokens', 'final', 'final', 'final']);
});
