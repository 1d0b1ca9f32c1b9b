import * as tf from '@tensorflow/tfjs';
import { describe, expect, test } from 'vitest';
import { handlesUsed, renewHandles } from '../../src/policy/backends/handles.ts';
import { selectBackend } from '../../src/policy/backends/select.ts';
import { NATIVE, NATIVE_BACKEND } from '../policy/backends/native.ts';
import { expectSameRun, linesOf, SMALL_TRANSFORMER, trainShipped } from './runs.ts';

describe.skipIf(!NATIVE)('the end of tensor handles', () => {
  test.each(['replay=true', 'replay=false', 'rollouts.staleness=1'])(
    'is not reached: the addon is loaded anew, and the run comes to the same bits (%s)',
    async (override) => {
      const overrides = [...SMALL_TRANSFORMER, `backend=${NATIVE_BACKEND}`, override, 'algorithm.kl=0.1'];
      const { path: whole } = await trainShipped('toy-lookup.yaml', overrides);
      const notes: string[] = [];
      const { path } = await trainShipped('toy-lookup.yaml', overrides, {
        handleLimit: 1,
        onNote: (text) => notes.push(text),
      });
      // After each of the four steps of the warm start and of the three iterations.
      expect(notes.filter((note) => /tensor handles used: a checkpoint is written/.test(note))).toHaveLength(7);
      expectSameRun(path, whole);
      const most = (of: string) =>
        Math.max(...linesOf<{ tensorHandles: number }>(of, 'timings.jsonl').map(({ tensorHandles }) => tensorHandles));
      expect(most(path)).toBeLessThan(most(whole));
    },
    120_000,
  );

  test('a tensor that is still there would be lost, so that it is an error', async () => {
    await selectBackend(NATIVE_BACKEND);
    const before = handlesUsed() ?? 0;
    const kept = tf.tensor1d([1, 2]);
    kept.dataSync();
    await expect(renewHandles()).rejects.toMatchObject({ code: 'TENSORS_LEFT' });
    expect(handlesUsed()).toBeGreaterThan(before);
    kept.dispose();
    await renewHandles();
    expect(handlesUsed()).toBe(1);
    expect([...tf.tidy(() => tf.add(tf.tensor1d([1, 2]), 1).dataSync())]).toEqual([2, 3]);
  });

  test('counts nothing on other backends', async () => {
    await selectBackend('cpu');
    expect(handlesUsed()).toBeNull();
    await selectBackend(NATIVE_BACKEND);
  });
});
