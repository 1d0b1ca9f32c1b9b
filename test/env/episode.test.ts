import { beforeAll, describe, expect, it } from 'vitest';
import type { Environment, ScriptedAction } from '../../src/env/environment.ts';
import { runEpisode } from '../../src/env/episode.ts';
import { type Format, formatOf } from '../../src/env/format.ts';
import { importEnvironment } from '../../src/env/load.ts';
import { bundle } from '../../src/env/sandbox/bundle.ts';
import { WorldHost, type WorldSession } from '../../src/env/sandbox/world-host.ts';
import type { Policy, PolicyReply } from '../../src/policy/policy.ts';
import { scriptedPolicy, scriptFromList } from '../../src/policy/scripted.ts';
import { Tokenizer } from '../../src/policy/tokenizer.ts';
import type { Json } from '../../src/records/json.ts';
import type { Episode } from '../../src/records/trajectory.ts';
import { requestOf, TRIAL, worldOf } from '../fixtures/rollouts.ts';

const FACTS = { population_of_x: '1200', population_of_y: '3400' };
const tokenizer = new Tokenizer([]);
let trial: Environment;
let script: string;

beforeAll(async () => {
  trial = await importEnvironment(TRIAL);
  script = await bundle(trial.world);
});

const call = (tool: string, args: { readonly [key: string]: Json } = {}) => ({
  calls: [{ tool, arguments: args }],
});
const lookup = (key: string) => call('lookup', { key });

/** Without the tools' schemas in the prompt, so that tokens can be counted by hand. */
const plain = (): Format => ({ ...formatOf(trial), prompt: (task) => `${task.prompt}\n` });

const TASK = { id: 'task', prompt: 'total population of x and y?', public: { facts: FACTS } };

/** The trial environment in a real isolate, with facts. */
async function run(
  policy: Policy,
  limits: Partial<Environment['limits']> = {},
  more: Partial<Parameters<typeof runEpisode>[0]> = {},
): Promise<Episode> {
  const host = new WorldHost({ script, reset: 'context', memoryMiB: 32 });
  try {
    return await runEpisode({
      request: requestOf(TASK),
      environment: { ...trial, limits: { ...trial.limits, ...limits } },
      format: plain(),
      world: host.open(JSON.stringify({ facts: FACTS }), 'seed'),
      policy,
      tokenizer,
      ...more,
    });
  } finally {
    host.dispose();
  }
}

const scripted = (...actions: readonly ScriptedAction[]) =>
  scriptedPolicy('list', scriptFromList(actions), formatOf(trial), tokenizer, () => TASK);

/** A policy that writes these texts, whatever they are, the last of them for ever. */
function writing(...texts: readonly string[]): Policy {
  return {
    name: 'writing',
    version: 0,
    tokens: 'text',
    request({ steps }) {
      const text = texts[Math.min(steps.length, texts.length - 1)]!;
      const calls = steps.reduce((sum, step) => sum + step.action.calls.length, 1);
      return {
        action: formatOf(trial).parse(text, calls),
        ids: [...tokenizer.encode(text), 256],
        logprobs: null,
        cutOff: false,
      };
    },
  };
}

/** A policy of prepared replies. */
function replying(...replies: readonly Partial<PolicyReply>[]): Policy & { released: string[] } {
  const final: PolicyReply = {
    action: { text: 'x', calls: [], final: 'x' },
    ids: [120, 256],
    logprobs: [-1, -2],
    cutOff: false,
  };
  return {
    name: 'replying',
    version: 5,
    tokens: 'text',
    released: [],
    request: ({ steps }) => ({ ...final, ...replies[steps.length] }),
    release(id) {
      this.released.push(id);
    },
  };
}

/** Late as a promise of another realm or library is: it has a `then`, and no more. */
function late<T>(promise: Promise<T>): Promise<T> {
  // biome-ignore lint/suspicious/noThenProperty: what it is for
  return { then: promise.then.bind(promise) } as Promise<T>;
}

const read = { id: 'call-1', name: 'lookup', arguments: { key: 'population_of_x' }, raw: '{"key":"population_of_x"}' };
const reading: Partial<PolicyReply> = {
  action: { text: 'look', calls: [read] },
  ids: [108, 256],
  logprobs: [-0.5, -0.25],
};

const sampledIds = ({ segments }: Episode) =>
  segments.flatMap(({ ids, actionMask }) => ids.filter((_, i) => actionMask[i] === 1));

it('a reply that comes late is awaited, whoever made its promise, and so is a failure', async () => {
  const replies = [reading, {}];
  const policy = replying(...replies);
  const later: Policy = { ...policy, request: (context) => late(Promise.resolve(policy.request(context))) };
  expect(await run(later)).toEqual(await run(replying(...replies)));
  const failing: Policy = { ...policy, request: () => late(Promise.reject(new Error('gone'))) };
  expect(await run(failing)).toMatchObject({ stop: 'policy-failure', stopDetail: 'gone' });
});

describe('the four-action script of the reference text', () => {
  const path = [
    lookup('population_of_x'),
    lookup('population_of_y'),
    call('calculator', { expression: '1200 + 3400' }),
    { final: '4600' },
  ];

  it('makes three tool calls, sees their results in order, and ends with its answer', async () => {
    const episode = await run(scripted(...path));
    expect(episode.steps.flatMap((step) => step.calls.map((record) => record.observation))).toEqual([
      '1200',
      '3400',
      '4600',
    ]);
    expect(episode.steps.flatMap((step) => step.action.calls.map(({ id, name }) => [id, name]))).toEqual([
      ['call-1', 'lookup'],
      ['call-2', 'lookup'],
      ['call-3', 'calculator'],
    ]);
    expect(episode).toMatchObject({ stop: 'final', final: '4600', policy: 'scripted:list', taskId: 'task' });
    expect(episode.steps).toHaveLength(4);
  });

  it('falls back to the last observation as its answer', async () => {
    expect(await run(scripted(...path.slice(0, 3)))).toMatchObject({ stop: 'final', final: '4600' });
    expect(await run(scripted())).toMatchObject({ stop: 'final', final: '' });
  });

  it('its record goes through JSON unchanged', async () => {
    const episode = await run(scripted(...path));
    expect(JSON.parse(JSON.stringify(episode))).toEqual(episode);
  });

  it('its segment is prompt, action, observation, …, action: sampled ids under the mask, nothing encoded twice', async () => {
    const { segments, steps } = await run(scripted(...path));
    const [segment] = segments;
    expect(segments).toHaveLength(1);
    expect(tokenizer.decode(segment!.ids)).toBe(
      'total population of x and y?\n' +
        '{"tool":"lookup","args":{"key":"population_of_x"}}1200\n' +
        '{"tool":"lookup","args":{"key":"population_of_y"}}3400\n' +
        '{"tool":"calculator","args":{"expression":"1200 + 3400"}}4600\n' +
        '{"final":"4600"}',
    );
    for (const { tokens, action } of steps) {
      const ids = segment!.ids.slice(tokens.start, tokens.end);
      expect(ids).toEqual([...tokenizer.encode(action.text), tokenizer.end]);
      expect(segment!.actionMask.slice(tokens.start, tokens.end).every((mask) => mask === 1)).toBe(true);
    }
    const sampled = steps.reduce((sum, { tokens }) => sum + tokens.end - tokens.start, 0);
    expect(segment!.actionMask.filter((mask) => mask === 1)).toHaveLength(sampled);
    expect(segment).toMatchObject({ trainable: false });
    expect(segment!.logprobs.every((logprob) => logprob === null)).toBe(true);
  });
});

describe('failures are observations', () => {
  it('a refused expression, a missing fact and an unknown tool are answered, and the episode goes on', async () => {
    const episode = await run(
      scripted(call('calculator', { expression: "__import__('os')" }), lookup('z'), call('lokup', { key: 'x' }), {
        final: 'I see',
      }),
    );
    expect(episode).toMatchObject({ stop: 'final', final: 'I see' });
    const [refused, missing, unknown] = episode.steps.map((step) => step.calls[0]);
    expect(refused).toMatchObject({ states: ['issued', 'running', 'error'], error: 'tool-error' });
    expect(missing?.observation).toContain('lookup failed: no fact z');
    expect(unknown?.observation).toContain('did you mean "lookup"?');
  });

  it('a transient failure is retried inside and uses up no step; a write is not', async () => {
    const episode = await run(scripted(call('flaky_read'), { final: 'done' }), { maxSteps: 2 });
    expect(episode.stop).toBe('final');
    expect(episode.steps[0]?.calls[0]).toMatchObject({ observation: 'run 2', attempts: 2, retried: ['busy'] });
    const write = await run(scripted(call('flaky_write'), call('flaky_write')));
    expect(write.steps.map((step) => step.calls[0]?.attempts)).toEqual([1, 1, undefined]);
    expect(write.steps[1]?.calls[0]?.observation).toBe('run 2');
  });

  it('after a timeout the tools are gone, the policy is told so, and its answer still counts', async () => {
    const episode = await run(scripted(call('endless'), lookup('population_of_x'), { final: 'enough' }));
    expect(episode).toMatchObject({ stop: 'final', final: 'enough' });
    expect(episode.steps.map((step) => step.calls[0]?.error)).toEqual(['timeout', 'skipped', undefined]);
    expect(episode.steps[0]?.calls[0]?.observation).toContain('may or may not have taken effect');
  });

  it('case 15: malformed JSON is an error observation for that call, and the episode goes on', async () => {
    const episode = await run(
      writing('{"tool":"lookup","args":{', '{"tool":"lookup","args":{"key":"population_of_x"}}', '{"final":"1200"}'),
    );
    expect(episode).toMatchObject({ stop: 'final', final: '1200' });
    expect(episode.steps[0]?.calls[0]).toMatchObject({ error: 'malformed', attempts: 0 });
    expect(episode.steps[0]?.action.calls[0]?.raw).toBe('{"tool":"lookup","args":{');
    expect(episode.steps[1]?.calls[0]).toMatchObject({ callId: 'call-2', observation: '1200' });
  });

  it('case 15: the bound is on malformed actions in a row, and stops the episode with its own reason', async () => {
    const good = '{"tool":"lookup","args":{"key":"population_of_x"}}';
    const episode = await run(writing('?', '?', good, '?', '?', '?'), { maxMalformed: 3 });
    expect(episode).toMatchObject({ stop: 'malformed-limit', final: null });
    expect(episode.steps).toHaveLength(6);
  });

  it('case 17: several calls have one result each, by id, in call order', async () => {
    const several = {
      calls: [...lookup('population_of_y').calls, ...call('nothing').calls, ...lookup('population_of_x').calls],
    };
    const episode = await run(scripted(several, { final: 'ok' }));
    expect(episode.steps[0]?.calls.map((record) => [record.callId, record.observation.slice(0, 20)])).toEqual([
      ['call-1', '3400'],
      ['call-2', 'error: unknown tool '],
      ['call-3', '1200'],
    ]);
    expect(tokenizer.decode(episode.segments[0]!.ids)).toContain('call-1: 3400\ncall-2: error');
  });

  it('case 17: calls beyond the limit, after a timeout or that cannot be read have their result too, each in its place', async () => {
    const ids = (n: number, from = 1) => Array.from({ length: n }, (_, i) => `call-${from + i}`);
    const four = { calls: Array.from({ length: 4 }, () => lookup('population_of_x').calls).flat() };
    const limited = await run(scripted(four, lookup('population_of_y'), { final: 'ok' }), { maxCalls: 2 });
    expect(limited.steps[0]?.calls.map(({ callId, error }) => [callId, error])).toEqual(
      ids(4).map((id, i) => [id, i < 2 ? undefined : 'too-many-calls']),
    );
    expect(limited.steps[1]?.calls).toMatchObject([{ callId: 'call-5', error: 'too-many-calls', attempts: 0 }]);
    const late = { calls: [...call('endless').calls, ...lookup('population_of_x').calls] };
    const timedOut = await run(scripted(late, { final: 'ok' }));
    expect(timedOut.steps[0]?.calls.map(({ callId, error }) => [callId, error])).toEqual([
      ['call-1', 'timeout'],
      ['call-2', 'skipped'],
    ]);
    const good = '{"tool":"lookup","args":{"key":"population_of_x"}}';
    const mixed = await run(writing(`[${good},{"tool":5},${good}]`, '{"final":"ok"}'));
    expect(mixed.steps[0]?.calls.map(({ callId, observation }) => [callId, observation.slice(0, 5)])).toEqual([
      ['call-1', '1200'],
      ['call-2', 'error'],
      ['call-3', '1200'],
    ]);
    for (const [episode, n] of [
      [limited, 4],
      [timedOut, 2],
      [mixed, 3],
    ] as const) {
      const context = tokenizer.decode(episode.segments[0]!.ids);
      expect(ids(n).map((id) => context.split(`${id}: `).length - 1)).toEqual(ids(n).map(() => 1));
    }
  });

  it.each(['你好', '😀', 'a\u2028b', 'nul\0', '\ud800 alone', '\udc00'])(
    'case 18: %j reaches the tool and comes back to the letter',
    async (text) => {
      const written = JSON.stringify({ tool: 'echo', args: { text } });
      const episode = await run(writing(written, '{"final":"ok"}'));
      expect(episode.steps[0]?.calls[0]?.observation).toBe(text);
      expect(episode.steps[0]?.action.calls[0]?.raw).toBe(JSON.stringify({ text }));
      expect(JSON.parse(JSON.stringify(episode))).toEqual(episode);
    },
  );
});

describe('stopping', () => {
  it('case 21: a policy that never ends is truncated at the step limit, without an answer', async () => {
    const episode = await run(scripted(...Array.from({ length: 20 }, () => lookup('population_of_x'))), {
      maxSteps: 5,
    });
    expect(episode).toMatchObject({ stop: 'max-steps', final: null });
    expect(episode.steps).toHaveLength(5);
  });

  it('case 16: a call that the token limit cuts off is recorded, never executed, and the reason is kept', async () => {
    let runs = 0;
    const world = worldOf({
      lookup: () => {
        runs++;
        return { status: 'ok', text: '1' };
      },
    });
    const text = '{"tool":"lookup","args":{"key":"population_of_x"}}';
    const whole = tokenizer.encode(text).length;
    for (const [limits, cut] of [
      [{ maxActionTokens: 20 }, 20],
      [{ maxActionTokens: whole }, whole],
      [{ maxTokens: 29 + 30 }, 30],
    ] as const) {
      const episode = await run(scripted(lookup('population_of_x')), limits, { world });
      expect(episode).toMatchObject({ stop: 'max-tokens', final: null });
      expect(episode.steps).toHaveLength(1);
      expect(episode.steps[0]?.action).toEqual({ text: text.slice(0, cut), calls: [] });
      expect(episode.segments[0]?.ids).toHaveLength(29 + cut);
    }
    expect(runs).toBe(0);
  });

  it('case 16: a cut-off reply that claims calls or an answer has neither', async () => {
    const calls = await run(replying({ ...reading, cutOff: true }));
    expect(calls).toMatchObject({ stop: 'max-tokens', final: null });
    expect(calls.steps[0]?.calls).toEqual([
      {
        callId: 'call-1',
        tool: 'lookup',
        states: ['issued', 'skipped'],
        attempts: 0,
        observation: 'not executed: the action was cut off.',
        error: 'skipped',
      },
    ]);
    const answer = await run(replying({ cutOff: true }));
    expect(answer).toMatchObject({ stop: 'max-tokens', final: null });
    expect(answer.steps[0]?.action.final).toBeUndefined();
  });

  it('a full context ends the episode before the policy is asked again, and an overlong prompt before it is asked at all', async () => {
    const full = await run(scripted(lookup('population_of_x')), { maxTokens: 29 + 51 + 5 });
    expect(full).toMatchObject({ stop: 'max-tokens', final: null, stopDetail: 'the context is full: 85 tokens' });
    expect(full.steps).toHaveLength(1);
    expect(full.segments[0]?.ids).toHaveLength(29 + 51);
    const none = await run(scripted(), { maxTokens: 29 });
    expect(none).toMatchObject({ stop: 'max-tokens', steps: [], segments: [] });
  });

  it('a cancelled run ends the episode between two steps, and what it did is kept', async () => {
    const abort = new AbortController();
    const world = worldOf({
      lookup: () => {
        abort.abort();
        return { status: 'ok', text: '1' };
      },
    });
    const episode = await run(scripted(lookup('population_of_x')), {}, { world, signal: abort.signal });
    expect(episode).toMatchObject({ stop: 'cancelled', final: null });
    expect(episode.steps).toHaveLength(1);
  });
});

it('a policy is given the prompt and what it observed: nothing of what the task gives the environment alone', async () => {
  const seen: string[] = [];
  const policy = scripted(lookup('population_of_x'));
  await run({
    ...policy,
    request(context) {
      seen.push(JSON.stringify(context));
      return policy.request(context);
    },
  });
  expect(seen).toHaveLength(2);
  expect(JSON.parse(seen[0]!)).toMatchObject({ prompt: TASK.prompt, steps: [] });
  expect(seen[0]).not.toContain(FACTS.population_of_x);
  expect(seen[1]).toContain(FACTS.population_of_x);
  for (const context of seen) expect(context).not.toContain(FACTS.population_of_y);
});

describe('what the policy does wrong is data', () => {
  it('a policy that throws fails its episode, with its words', async () => {
    for (const request of [
      () => {
        throw new Error('no answer from the model');
      },
      () => Promise.reject(new Error('no answer from the model')),
    ]) {
      const policy = { ...replying(), request };
      expect(await run(policy)).toMatchObject({
        stop: 'policy-failure',
        stopDetail: 'no answer from the model',
        final: null,
      });
      expect(policy.released).toEqual(['0.task.0']);
    }
  });

  it.each([
    ['a logprob missing', { logprobs: [-1] }, 'expected 2 logprobs, one a token, found 1'],
    ['a logprob that is no number', { logprobs: [-1, Number.NaN] }, 'expected finite logprobs, found NaN'],
    [
      'too many tokens',
      { ids: Array(513).fill(1) as number[], logprobs: null },
      'expected at most 512 tokens, found 513',
    ],
    ['no action', { action: { text: '', calls: [] } }, 'expected a call or a final answer, found neither'],
  ])('%s is a failure of the policy, and none of the reply is recorded', async (_, reply, detail) => {
    const episode = await run(replying(reading, reply));
    expect(episode.stop).toBe('policy-failure');
    expect(episode.stopDetail).toContain(detail);
    expect(episode.steps).toHaveLength(1);
    expect(sampledIds(episode)).toEqual([108, 256]);
  });

  it('case 12: only what was sampled is trainable: no end token is added, and what is observed has no logprob', async () => {
    const episode = await run(
      replying({ ...reading, observed: [7, 8] }, { ids: [120, 121], logprobs: [-1, -2], cutOff: true }),
    );
    const [segment] = episode.segments;
    expect(sampledIds(episode)).toEqual([108, 256, 120, 121]);
    expect(segment!.ids.slice(29, 34)).toEqual([7, 8, 108, 256, '1'.charCodeAt(0)]);
    expect(segment!.actionMask.slice(29, 34)).toEqual([0, 0, 1, 1, 0]);
    expect(segment!.logprobs.slice(29, 34)).toEqual([null, null, -0.5, -0.25, null]);
    expect(segment!.policyVersion.slice(29, 34)).toEqual([null, null, 5, 5, null]);
    expect(segment!.ids.at(-1)).toBe(121);
    expect(segment!.trainable).toBe(true);
    for (const [i, mask] of segment!.actionMask.entries()) expect(segment!.logprobs[i] === null).toBe(mask === 0);
  });

  it('one reply without logprobs makes the segment one that is not trained on', async () => {
    const episode = await run(replying(reading, { logprobs: null }));
    expect(episode.segments[0]).toMatchObject({ trainable: false });
    expect(episode.segments[0]!.actionMask.filter((mask) => mask === 1)).toHaveLength(4);
  });

  it('a policy with tokens of its own is given no text as tokens', async () => {
    const policy: Policy = {
      ...replying({ ...reading, observed: [3], ids: [1], logprobs: [-1] }, { observed: [9], ids: [0], logprobs: [-2] }),
      tokens: 'own',
    };
    expect((await run(policy)).segments).toEqual([
      {
        ids: [3, 1, 9, 0],
        actionMask: [0, 1, 0, 1],
        logprobs: [null, -1, null, -2],
        policyVersion: [null, 5, null, 5],
        trainable: true,
      },
    ]);
  });

  it('is asked with the whole context and where the news in it begin', async () => {
    const seen: [number, number][] = [];
    const inner = replying(reading, reading);
    await run({
      ...inner,
      request(context) {
        seen.push([context.newFrom, context.ids.length]);
        return inner.request(context);
      },
    });
    // Prompt 29; action 2, observation "1200\n" 5.
    expect(seen).toEqual([
      [0, 29],
      [31, 36],
      [38, 43],
    ]);
  });
});

describe('what the world does wrong is data', () => {
  const crashing = (): WorldSession =>
    worldOf({ lookup: () => ({ status: 'crashed', kind: 'out-of-memory', message: 'Isolate was disposed' }) });

  it('case 19: a crash fails the episode with the boundary and the words, later calls are skipped', async () => {
    const both = { calls: [...lookup('population_of_x').calls, ...lookup('population_of_y').calls] };
    const episode = await run(scripted(both), {}, { world: crashing() });
    expect(episode).toMatchObject({ stop: 'sandbox-failure', failure: 'out-of-memory', final: null });
    expect(episode.stopDetail).toContain('Isolate was disposed');
    expect(episode.steps[0]?.calls.map((record) => record.error)).toEqual(['out-of-memory', 'skipped']);
  });
});
