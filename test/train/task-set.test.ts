import { describe, expect, it } from 'vitest';
import toyLookup from '../../src/env/toy-lookup/index.ts';
import { buildTaskSet, drawOfStep, splitKey } from '../../src/train/task-set.ts';

const OPTIONS = { values: 99 };

describe('buildTaskSet', () => {
  it('fills both sides, and no task is on both', async () => {
    const { train, heldOut } = await buildTaskSet(toyLookup, OPTIONS, { train: 40, heldOut: 10, seed: 0 });
    const ids = [...train, ...heldOut].map((task) => task.id);
    expect([train.length, heldOut.length, new Set(ids).size]).toEqual([40, 10, 50]);
    for (const { id } of train) expect(splitKey(id)).toBeGreaterThanOrEqual(0.2);
    for (const { id } of heldOut) expect(splitKey(id)).toBeLessThan(0.2);
  });

  it('keeps every task on its side where both sides grow in proportion', async () => {
    const small = await buildTaskSet(toyLookup, OPTIONS, { train: 40, heldOut: 10, seed: 0 });
    const large = await buildTaskSet(toyLookup, OPTIONS, { train: 80, heldOut: 20, seed: 0 });
    expect(large.train).toEqual(expect.arrayContaining([...small.train]));
    expect(large.heldOut).toEqual(expect.arrayContaining([...small.heldOut]));
  });

  it('refuses two tasks of one id, which a finite set would give for ever', async () => {
    const finite = {
      ...toyLookup,
      task: (seed: string, index: number, options: typeof OPTIONS) => toyLookup.task(seed, index % 5, options),
    };
    await expect(buildTaskSet(finite, OPTIONS, { train: 40, heldOut: 10, seed: 0 })).rejects.toThrow(
      'found "toy-lookup-0" for index 0 and for 5',
    );
  });
});

it('a large set can be interrupted while it is made', async () => {
  const stop = new AbortController();
  const made = buildTaskSet(toyLookup, OPTIONS, { train: 1_000_000, heldOut: 1, seed: 0 }, stop.signal);
  setImmediate(() => stop.abort());
  await expect(made).rejects.toMatchObject({ name: 'AbortError' });
});

it('a finite task function is asked for no task that nobody needs', async () => {
  const asked: number[] = [];
  const finite = {
    ...toyLookup,
    task: (seed: string, index: number, options: typeof OPTIONS) => {
      asked.push(index);
      return toyLookup.task(seed, index, options);
    },
  };
  const { train, heldOut } = await buildTaskSet(finite, OPTIONS, { train: 150, heldOut: 50, seed: 0 });
  const last = [...train.slice(-1), ...heldOut.slice(-1)].map(({ id }) => Number(id.replace('toy-lookup-', '')));
  expect(asked).toEqual(Array.from({ length: Math.max(...last) + 1 }, (_, i) => i));
});

describe('a task that is none', () => {
  it.each([
    [
      'throws',
      () => {
        throw new Error('boom');
      },
      'expected task 0, found that task() throws: boom',
    ],
    ['is nothing', () => undefined, 'task 0: expected an object { id, prompt, public, held }, found nothing'],
    ['is a promise', async () => ({ id: 'x', prompt: '' }), 'found a promise'],
    ['has a number as its id', () => ({ id: 3, prompt: '' }), 'task 0: id: expected a text, found 3'],
    ['has no prompt', () => ({ id: 'x' }), 'task 0: prompt: expected a text, found nothing'],
  ])('is told by its number: one that %s', async (_, task, message) => {
    const broken = { ...toyLookup, task: task as unknown as typeof toyLookup.task };
    await expect(buildTaskSet(broken, OPTIONS, { train: 4, heldOut: 1, seed: 0 })).rejects.toThrow(message);
  });
});

describe('drawOfStep', () => {
  it('goes through all items once in every pass, in a new order, and a step needs no other step', () => {
    const items = [0, 1, 2, 3, 4, 5];
    const steps = Array.from({ length: 6 }, (_, step) => drawOfStep(items, 's', step, 4));
    const drawn = steps.flat();
    for (const pass of [0, 1, 2, 3]) {
      expect(drawn.slice(6 * pass, 6 * pass + 6).toSorted((a, b) => a - b)).toEqual(items);
    }
    expect(drawn.slice(0, 6)).not.toEqual(drawn.slice(6, 12));
    expect(drawOfStep(items, 's', 5, 4)).toEqual(steps[5]);
  });
});
