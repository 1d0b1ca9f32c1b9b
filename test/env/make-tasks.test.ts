import { describe, expect, it } from 'vitest';
import { makeTasks } from '../../src/env/make-tasks.ts';
import type { Task } from '../../src/records/task.ts';

const made = (task: unknown, timeoutMs?: number) =>
  makeTasks({ name: 'mine', task: task as () => Task }, { seed: 's', from: 0, count: 2, options: {} }, timeoutMs);
const good = { id: 'a', prompt: 'Go.', public: { facts: [1, 'two', null] }, held: 3 };

describe('a task that is none is refused before anything is run', () => {
  const cyclic: Record<string, unknown> = {};
  cyclic.self = [cyclic];
  let deep: unknown = 1;
  for (let i = 0; i < 1000; i++) deep = [deep];

  it.each([
    ['cyclic', { public: cyclic }, 'public.self[0]: expected a JSON value, found an object that contains itself'],
    ['a function', { public: { f: () => 1 } }, 'public.f: expected a JSON value, found a function'],
    ['a BigInt', { held: { n: 3n } }, 'held.n: expected a JSON value, found a bigint'],
    ['undefined', { public: undefined }, 'public: expected a JSON value, found undefined'],
    ['undefined within', { public: { x: undefined } }, 'public.x: expected a JSON value, found undefined'],
    ['NaN', { public: [Number.NaN] }, 'public[0]: expected a JSON value, found NaN'],
    ['a Map', { public: new Map() }, 'public: expected a JSON value, found an instance of a class'],
    ['a Date', { held: new Date(0) }, 'held: expected a JSON value, found an instance of a class'],
    ['a getter', { public: Object.defineProperty({}, 'x', { enumerable: true, get: () => 1 }) }, 'public.x: '],
    ['toJSON', { public: { toJSON: () => 'other' } }, 'public.toJSON: expected a JSON value, found a function'],
    ['holes', { public: new Array(2) }, 'public: expected a JSON value, found an array with holes'],
    ['too deep', { public: deep }, 'public: expected at most 500 levels'],
    ['no held', { held: undefined }, 'held: expected a JSON value, found undefined'],
    ['an empty id', { id: '' }, 'id: expected a text, found ""'],
  ])('%s', (_, wrong, message) => {
    expect(() => made(() => ({ ...good, ...wrong }))).toThrow(`environment mine: task 0: ${message}`);
  });

  it('all problems of a task are told at once', () => {
    expect(() => made(() => ({ id: 1, prompt: null, public: 1n, held: 1n }))).toThrow(
      /id: .*; prompt: .*; public: .*; held: /,
    );
  });

  it('a function that never comes back ends in bounded time, with the number of the task', () => {
    const endless = (_: string, index: number) => {
      for (; index === 1; );
      return { ...good, id: String(index) };
    };
    expect(() => made(endless, 200)).toThrow('expected tasks 0 to 1 within 200 ms, found task 1 not done by then');
  });

  it('what is thrown is told, whatever it is', () => {
    expect(() =>
      made(() => {
        throw 'boom';
      }),
    ).toThrow('expected task 0, found that task() throws: boom');
  });
});

it('what later code does with its objects changes no task', () => {
  const mine = structuredClone(good);
  const [task] = made(() => mine) as [Task];
  mine.public.facts.push(4);
  mine.prompt = 'Stop.';
  expect(task).toEqual(good);
  expect(() => (task.public as { facts: number[] }).facts.push(4)).toThrow(TypeError);
});

it('numbers, keys and texts come through as they are', () => {
  const value = { 'a b': [-1.5e-7, '\u2028é\ud800', true, {}], '': [] };
  const [task] = made(() => ({ ...good, public: value })) as [Task];
  expect(task.public).toEqual(value);
});
