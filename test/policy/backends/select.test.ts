import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import * as tf from '@tensorflow/tfjs';
import { expect, test } from 'vitest';
import { BACKENDS, describeBackend } from '../../../src/policy/backends/backend.ts';
import { prove } from '../../../src/policy/backends/proof.ts';
import { probeBackends, selectBackend } from '../../../src/policy/backends/select.ts';

const PROBE = new URL('./probe.ts', import.meta.url);

test('auto takes the first that works and says of each better one why not', async () => {
  const backend = await selectBackend('auto');
  expect(backend.passedOver.map((p) => p.backend)).toEqual(BACKENDS.slice(0, BACKENDS.indexOf(backend.name)));
  for (const { reason, brief } of backend.passedOver) {
    expect(reason).toMatch(/^[^\n]{10,}$/);
    expect(brief).toMatch(/^[a-z ]{2,20}$/i);
  }
  expect(backend.device).not.toBe('');
});

test('a backend and why better ones were passed over is one short line', () => {
  const passedOver = [
    { backend: 'cuda', reason: 'TensorFlow is not set up (isogym setup cuda)', brief: 'not set up' },
    { backend: 'native', reason: 'TensorFlow is not set up (isogym setup native)', brief: 'not set up' },
    { backend: 'webgpu', reason: 'webgpu not installed (npm install webgpu)', brief: 'not installed' },
  ] as const;
  expect(describeBackend({ name: 'wasm', device: 'Xeon, one thread', passedOver })).toBe(
    'backend wasm: Xeon, one thread (passed over: cuda, native: not set up; webgpu: not installed)',
  );
  expect(describeBackend({ name: 'cpu', device: 'Xeon', passedOver: [] })).toBe('backend cpu: Xeon');
});

test('a backend that was asked for by name is set, and nothing is passed over', async () => {
  for (const name of ['wasm', 'cpu', 'wasm'] as const) {
    const backend = await selectBackend(name);
    expect(backend).toMatchObject({ name, passedOver: [] });
    expect(tf.getBackend()).toBe(name);
    expect(backend.tf.matMul).toBe(tf.matMul);
  }
});

test('a backend that was asked for and does not work is an error with reason and hint, and no other takes its place', async () => {
  await selectBackend('cpu');
  await expect(selectBackend('webgpu')).rejects.toMatchObject({
    name: 'IsogymError',
    code: 'BACKEND_UNAVAILABLE',
    message: expect.stringContaining('expected backend webgpu to work, found: '),
    hint: 'npm install webgpu @tensorflow/tfjs-backend-webgpu\n      backend=auto takes the best that works here',
  });
  expect(tf.getBackend()).toBe('cpu');
});

test('selections at the same time wait for each other, and the last one stays set', async () => {
  const names = ['wasm', 'cpu', 'wasm', 'cpu'] as const;
  const backends = await Promise.all(names.map(selectBackend));
  expect(backends.map((b) => b.name)).toEqual(names);
  expect(tf.getBackend()).toBe('cpu');
});

test('selecting leaves no tensor behind', async () => {
  const before = tf.memory().numTensors;
  await selectBackend('wasm');
  await selectBackend('cpu');
  expect(tf.memory().numTensors).toBe(before);
});

test('probing tries every backend and sets again the one that was set', async () => {
  await selectBackend('cpu');
  const probed = await probeBackends();
  expect(probed.map((p) => p.backend)).toEqual(BACKENDS);
  for (const { works, reason, device } of probed) {
    expect([reason === null, device === null]).toEqual(works ? [true, false] : [false, true]);
  }
  expect(probed.filter((p) => p.works).map((p) => p.backend)).toEqual(expect.arrayContaining(['wasm', 'cpu']));
  expect(tf.getBackend()).toBe('cpu');
});

test('the proof refuses a backend whose product or gradient is wrong', async () => {
  await selectBackend('cpu');
  await expect(prove(tf)).resolves.toBeUndefined();
  const wrongProduct = { ...tf, matMul: (a: tf.Tensor2D, b: tf.Tensor2D) => tf.mul(tf.matMul(a, b), 1.001) };
  await expect(prove(wrongProduct as typeof tf)).rejects.toThrow('computes wrongly');
  const nan = { ...tf, square: (x: tf.Tensor) => tf.mul(x, Number.NaN) };
  await expect(prove(nan as typeof tf)).rejects.toThrow('computes wrongly');
});

test('wasm works in a worker thread with our kernels in it', async () => {
  const worker = new Worker(PROBE);
  const message = await new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
  });
  expect(message).toEqual({ name: 'wasm', batched: [3, 5] });
});

test('bringing up wasm and cpu prints nothing', () => {
  expect(spawnSync(process.execPath, [fileURLToPath(PROBE)], { encoding: 'utf8' })).toMatchObject({
    status: 0,
    stdout: '',
    stderr: '',
  });
});

test('wasm leaves the process its own way of ending on an error', () => {
  const { status, stderr } = spawnSync(process.execPath, [fileURLToPath(PROBE), 'crash'], { encoding: 'utf8' });
  expect(status).toBe(1);
  expect(stderr).toMatch(/^file:.*probe\.ts:\d+\n/);
});
