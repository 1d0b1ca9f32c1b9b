import { expect, it } from 'vitest';
import { z } from 'zod';
import { formatOf } from '../../src/env/format.ts';
import { defineTool } from '../../src/env/tool.ts';
import { actionGrammar } from '../../src/policy/grammar/index.ts';
import type { PolicyContext, PolicyReply } from '../../src/policy/policy.ts';
import { Tokenizer } from '../../src/policy/tokenizer.ts';
import { uniformPolicy } from '../../src/policy/uniform.ts';
import { generator } from '../../src/records/random.ts';

const pick = defineTool({
  name: 'pick',
  description: 'Picks one.',
  parameters: z.object({ what: z.enum(['red', 'green', 'blue']) }),
  effect: 'read',
});
const environment = { name: 'test', tools: [pick], answer: z.enum(['yes', 'no']), format: 'compact' as const };
const tokenizer = new Tokenizer(['pick ', 'answer ', 'red', 'green', 'blue', 'yes', 'no']);
const format = formatOf(environment);
const policy = uniformPolicy(actionGrammar(environment, tokenizer), format, tokenizer);
const random = generator('uniform');
const ask = (maxTokens = 10) =>
  policy.request({ steps: [], maxTokens, random } as unknown as PolicyContext) as PolicyReply;

it('every allowed token is equally likely, and its logprob is −ln of their number', () => {
  const counts = new Map<string, number>();
  for (let i = 0; i < 6000; i++) {
    const reply = ask();
    counts.set(reply.action.text, (counts.get(reply.action.text) ?? 0) + 1);
    const second = reply.action.final === undefined ? 3 : 2;
    expect([reply.ids.length, reply.ids[2], ...reply.logprobs!]).toEqual([3, 256, -Math.log(2), -Math.log(second), -0]);
  }
  const expected = {
    'pick red': 1 / 6,
    'pick green': 1 / 6,
    'pick blue': 1 / 6,
    'answer yes': 1 / 4,
    'answer no': 1 / 4,
  };
  expect([...counts.keys()].sort()).toEqual(Object.keys(expected).sort());
  for (const [text, p] of Object.entries(expected)) {
    expect(Math.abs(counts.get(text)! / 6000 - p)).toBeLessThan(4 * Math.sqrt((p * (1 - p)) / 6000));
  }
});

it('an action that does not fit is cut off, and is no action', () => {
  const reply = ask(2);
  expect(reply).toMatchObject({ cutOff: true, action: { calls: [] } });
  expect(reply.ids).toHaveLength(2);
  expect(reply.action.final).toBeUndefined();
  expect(reply.action.text).toBe(tokenizer.decode(reply.ids));
});
