/** @module Brings wasm up in a thread or a process of its own; with the argument `crash`, then fails, to show how that ends. */
import { parentPort } from 'node:worker_threads';
import { selectBackend } from '../../../src/policy/backends/select.ts';

const { name, tf } = await selectBackend('wasm');
const x = tf.tensor2d([1, 2, 3, 4, 5, 6], [2, 3]);
const indices = tf.tensor2d([2, 1], [2, 1], 'int32');
const batched = Array.from(await tf.gather(x, indices, 1, 1).data());
await selectBackend('cpu');
tf.square(x);
if (process.argv.includes('crash')) throw new Error('on purpose');
parentPort?.postMessage({ name, batched });
