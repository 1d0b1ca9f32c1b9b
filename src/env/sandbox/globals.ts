/** @module Which names of the global object an isolate's code finds. */
import { runInNewContext } from 'node:vm';

/**
 * All that is kept. An engine's news are not among them: WebAssembly, SharedArrayBuffer and Atomics reach outside the heap limit, WeakRef
 * and FinalizationRegistry show when memory is short, Intl and Temporal the host's locale and clock; Promise, AsyncDisposableStack
 * (whose `disposeAsync` gives one) and eval have no place behind the door.
 * It says nothing of their members: those that lead to what is gone the guard takes away, and a test knows all that there are.
 */
export const KEPT: ReadonlySet<string> = new Set(
  `
  Object Function Array Number Boolean String Symbol BigInt Date RegExp JSON Math Reflect Proxy Map Set
  WeakMap WeakSet Iterator DisposableStack globalThis undefined NaN Infinity Error AggregateError EvalError
  RangeError ReferenceError SuppressedError SyntaxError TypeError URIError ArrayBuffer DataView Float16Array
  Float32Array Float64Array BigInt64Array BigUint64Array Int8Array Int16Array Int32Array Uint8Array
  Uint16Array Uint32Array Uint8ClampedArray parseFloat parseInt isFinite isNaN escape unescape decodeURI
  decodeURIComponent encodeURI encodeURIComponent
  `
    .trim()
    .split(/\s+/),
);

/** What this engine has beyond that, and whether it can be taken away: asked of a context that nobody has touched. */
const BEYOND = (
  runInNewContext(
    'Object.entries(Object.getOwnPropertyDescriptors(globalThis)).map(([name, { configurable }]) => [name, configurable])',
  ) as readonly (readonly [name: string, configurable: boolean])[]
).filter(([name]) => !KEPT.has(name));

export const GONE: readonly string[] = BEYOND.map(([name]) => name);

/** Those that stay for all that: what a flag like `--expose-gc` brings. */
export const STUCK: readonly string[] = BEYOND.filter(([, configurable]) => !configurable).map(([name]) => name);
