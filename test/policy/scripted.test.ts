import { expect, it } from 'vitest';
import { z } from 'zod';
import { formatOf } from '../../src/env/format.ts';
import { defineTool } from '../../src/env/tool.ts';
import type { PolicyContext } from '../../src/policy/policy.ts';
import { scriptedPolicy, scriptFromList } from '../../src/policy/scripted.ts';
import { Tokenizer } from '../../src/policy/tokenizer.ts';
import type { Step } from '../../src/records/trajectory.ts';

const say = defineTool({
  name: 'say',
  description: 'Says it.',
  parameters: z.object({ text: z.string() }),
  effect: 'read',
});
const format = formatOf({ name: 'test', tools: [say], format: 'compact' });
const tokenizer = new Tokenizer(['say ', 'hello']);

const step = (observation: string): Step => ({
  index: 0,
  action: { text: 'say x', calls: [{ id: 'call-1', name: 'say', arguments: { text: 'x' }, raw: 'x' }] },
  calls: [{ callId: 'call-1', tool: 'say', states: ['issued', 'running', 'ok'], attempts: 1, observation }],
  tokens: { segment: 0, start: 0, end: 1 },
  hash: '',
});
const context = (steps: readonly Step[], maxTokens = 10): PolicyContext => ({
  episodeId: 'e',
  prompt: 'p',
  steps,
  ids: [],
  newFrom: 0,
  maxTokens,
  random: () => 0.25,
});
const taskOf = (id: string) => ({ id: `task of ${id}`, prompt: 'p', public: null });
const list = scriptedPolicy(
  'list',
  scriptFromList([{ calls: [{ tool: 'say', arguments: { text: 'hello' } }] }]),
  format,
  tokenizer,
  taskOf,
);

it('writes its action as text, encodes it once, ends it with the end token, and has sampled nothing', () => {
  expect(list).toMatchObject({ name: 'scripted:list', version: 0, tokens: 'text' });
  expect(list.request(context([]))).toEqual({
    action: { text: 'say hello', calls: [{ id: 'call-1', name: 'say', arguments: { text: 'hello' }, raw: 'hello' }] },
    ids: [257, 258, 256],
    logprobs: null,
    cutOff: false,
  });
});

it('after the last action of a list it answers with the last observation', () => {
  expect(list.request(context([step('12')]))).toMatchObject({ action: { final: '12' } });
});

it('numbers its calls on from those that the episode has seen', () => {
  const again = scriptedPolicy(
    'again',
    () => ({ calls: [{ tool: 'say', arguments: { text: 'hello' } }] }),
    format,
    tokenizer,
    taskOf,
  );
  expect(again.request(context([step('1'), step('2')]))).toMatchObject({ action: { calls: [{ id: 'call-3' }] } });
});

it('what does not fit is cut off: text without a call, and no end token', () => {
  expect(list.request(context([], 2))).toEqual({
    action: { text: 'say hello', calls: [] },
    ids: [257, 258],
    logprobs: null,
    cutOff: true,
  });
});

it('shows its script the task, the steps and the episode’s own chance', () => {
  const answer = scriptedPolicy(
    'seeing',
    ({ task, steps, random }) => ({ final: `${task.id} ${steps.length} ${random()}` }),
    format,
    tokenizer,
    taskOf,
  );
  expect(answer.request(context([step('1')], 40))).toMatchObject({ action: { final: 'task of e 1 0.25' } });
});
