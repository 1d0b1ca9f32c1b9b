import { expect, test } from 'vitest';
import { z } from 'zod';
import toyLookup from '../../src/env/toy-lookup/index.ts';
import { environmentHashes, tasksHash, verifierHashes } from '../../src/train/foundation.ts';
import { buildTaskSet } from '../../src/train/task-set.ts';
import exactAnswer from '../../src/verifiers/exact-answer/index.ts';

test('whatever an environment declares is in the hash of its declaration, and none of it in that of its code', async () => {
  const [tool, ...others] = toyLookup.tools;
  const variants = [
    toyLookup,
    { ...toyLookup, limits: { ...toyLookup.limits, maxSteps: 3 } },
    { ...toyLookup, words: [...toyLookup.words, 'more'] },
    { ...toyLookup, format: 'json' as const },
    { ...toyLookup, answer: z.string().max(3) },
    { ...toyLookup, tools: [{ ...tool!, description: 'Another.' }, ...others] },
    { ...toyLookup, tools: [{ ...tool!, maxOutput: 100 }, ...others] },
    { ...toyLookup, tools: [{ ...tool!, parameters: z.strictObject({ other: z.string() }) }, ...others] },
  ];
  const hashes = await Promise.all(variants.map((one) => environmentHashes(one as typeof toyLookup)));
  expect(new Set(hashes.map(({ declaration }) => declaration)).size).toBe(variants.length);
  expect(new Set(hashes.map(({ code }) => code)).size).toBe(1);
});

test('where its worlds run is not, and neither is the order of its keys', async () => {
  const { declaration } = await environmentHashes(toyLookup);
  const turned = Object.fromEntries(Object.entries({ ...toyLookup, isolation: 'process' }).reverse());
  expect((await environmentHashes(turned as unknown as typeof toyLookup)).declaration).toBe(declaration);
});

test('the threshold of a verifier is part of what it declares', async () => {
  const { declaration } = await verifierHashes(exactAnswer);
  expect((await verifierHashes({ ...exactAnswer, success: 0.5 })).declaration).not.toBe(declaration);
});

test('a task that task() makes otherwise, its held part alone, makes another set', async () => {
  const options = toyLookup.options.parse({});
  const sizes = { train: 10, heldOut: 4, seed: 0 };
  const [set, again] = [await buildTaskSet(toyLookup, options, sizes), await buildTaskSet(toyLookup, options, sizes)];
  expect(tasksHash(again)).toBe(tasksHash(set));
  for (const changed of [{ held: 'other' }, { prompt: 'other' }, { public: 'other' }]) {
    expect(tasksHash({ ...set, heldOut: set.heldOut.with(2, { ...set.heldOut[2]!, ...changed }) })).not.toBe(
      tasksHash(set),
    );
  }
  expect(tasksHash({ train: set.train.slice(1), heldOut: set.heldOut })).not.toBe(tasksHash(set));
});
