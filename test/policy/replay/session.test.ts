import * as tf from '@tensorflow/tfjs';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { selectBackend } from '../../../src/policy/backends/select.ts';
import { assign } from '../../../src/policy/replay/recorded-function.ts';
import { Session } from '../../../src/policy/replay/session.ts';
import { NATIVE, NATIVE_BACKEND } from '../backends/native.ts';

describe.skipIf(!NATIVE)('a session', () => {
  beforeAll(async () => {
    await selectBackend(NATIVE_BACKEND);
  });
  let tensors = 0;
  beforeEach(() => {
    tensors = tf.memory().numTensors;
  });

  /** y = x · w + 1, with a way to end that sets w to y's first row sums. */
  function session(): Session {
    const made = new Session();
    tf.tidy(() => made.declare({ w: tf.tensor2d([1, 2, 3, 4], [2, 2]) }));
    const x = tf.zeros([1, 2]);
    made.define('step', { x }, ({ feeds, read }) => {
      const w = read('w');
      const y = tf.add(tf.matMul(feeds.x as tf.Tensor2D, w as tf.Tensor2D), 1);
      return {
        outputs: { y },
        endings: { set: [assign('w', tf.concat([y, y] as tf.Tensor2D[]))], add: [assign('w', tf.add(w, 1))] },
      };
    });
    x.dispose();
    return made;
  }

  function run(of: Session, x: readonly number[], ending?: string): number[] {
    return tf.tidy(() => [...(of.run('step', { x: tf.tensor2d([...x], [1, 2]) }, ending).y as tf.Tensor).dataSync()]);
  }

  function read(of: Session): number[] {
    return tf.tidy(() => [...of.read(['w']).w.dataSync()]);
  }

  test('replays with what it is fed, and changes nothing unless told to', () => {
    const s = session();
    expect(run(s, [1, 0])).toEqual([2, 3]);
    expect(run(s, [0, 1])).toEqual([4, 5]);
    expect(read(s)).toEqual([1, 2, 3, 4]);
    s.dispose();
    expect(tf.memory().numTensors).toBe(tensors);
  });

  test('an ending changes variables after all reads of that call', () => {
    const s = session();
    expect(run(s, [1, 0], 'set')).toEqual([2, 3]);
    expect(read(s)).toEqual([2, 3, 2, 3]);
    expect(run(s, [1, 0], 'add')).toEqual([3, 4]);
    expect(read(s)).toEqual([3, 4, 3, 4]);
    s.dispose();
  });

  test('what a variable is given is its own: it holds on to the memory of no typed array', () => {
    // TensorFlow takes over the memory itself where it is aligned, which is chance.
    const arrays = Array.from({ length: 64 }, (_, i) => new Float32Array(16 + i).fill(1));
    const s = new Session();
    const values = Object.fromEntries(arrays.map((array, i) => [`v${i}`, tf.tensor1d(array)]));
    s.declare(values);
    const read = () => tf.tidy(() => Object.values(s.read(Object.keys(values))).map((value) => value.dataSync()[0]));
    // Loaded with these values; what is written from then on goes in at once.
    expect(read()).toEqual(arrays.map(() => 1));
    s.write(values);
    for (const array of arrays) array.fill(2);
    expect(read()).toEqual(arrays.map(() => 1));
    tf.dispose(values);
    s.dispose();
  });

  test('a new function and a new variable leave the others as they are', () => {
    const s = session();
    run(s, [1, 0], 'set');
    tf.tidy(() => s.declare({ b: tf.tensor1d([5]) }));
    s.define('sum', {}, (scope) => ({ outputs: { y: tf.add(tf.sum(scope.read('w')), scope.read('b')) } }));
    expect(tf.tidy(() => [...(s.run('sum', {}).y as tf.Tensor).dataSync()])).toEqual([15]);
    expect(run(s, [0, 1])).toEqual([3, 4]);
    expect(s.recordings).toBe(2);
    s.dispose();
    expect(tf.memory().numTensors).toBe(tensors);
  });

  test('what was read stays as it was when the variable changes', () => {
    const s = session();
    const { w } = s.read(['w']);
    run(s, [1, 0], 'add');
    expect([...w.dataSync()]).toEqual([1, 2, 3, 4]);
    expect(read(s)).toEqual([2, 3, 4, 5]);
    w.dispose();
    s.dispose();
  });

  test('a step that reads a tensor back is refused, by the name of the operation', () => {
    const s = session();
    const bad = tf.zeros([2]);
    expect(() =>
      s.define('bad', { x: bad }, ({ feeds }) => {
        const total = tf.sum(tf.square(feeds.x as tf.Tensor)).dataSync()[0] ?? 0;
        return { outputs: { y: tf.scalar(total) } };
      }),
    ).toThrow(expect.objectContaining({ code: 'NOT_RECORDABLE', message: expect.stringContaining('result of Sum') }));
    bad.dispose();
    expect(run(s, [1, 0])).toEqual([2, 3]);
    s.dispose();
    expect(tf.memory().numTensors).toBe(tensors);
  });
});
