/** @module Our own WebAssembly module, over the memory of tfjs's: its source is in `assembly/`, its binary in `binary.ts`. */
import type { TensorInfo } from '@tensorflow/tfjs';
import { BINARY } from './binary.ts';
import type { WasmBackend } from './heap.ts';

/** Pointers and strides in bytes, counts in elements; what each does is told in `assembly/`. */
export interface OwnModule {
  gemm(
    a: number,
    b: number,
    out: number,
    batch: number,
    m: number,
    k: number,
    n: number,
    aStep: number,
    aRow: number,
    aInner: number,
    bStep: number,
    bRow: number,
    transposeB: number,
    outStep: number,
    outRow: number,
    accumulate: number,
    scratch: number,
  ): void;
  rmsNorm(x: number, y: number, r: number, rows: number, width: number, epsilon: number): void;
  rmsNormGradient(dy: number, y: number, r: number, dx: number, rows: number, width: number): void;
  rotate(
    x: number,
    cos: number,
    sin: number,
    out: number,
    rows: number,
    tableRows: number,
    heads: number,
    headWidth: number,
    backwards: number,
  ): void;
  logprobs(
    logits: number,
    targets: number,
    masks: number,
    maskIndex: number,
    logp: number,
    picked: number,
    entropies: number,
    rows: number,
    vocabulary: number,
    temperature: number,
  ): void;
  logprobsGradient(
    dLogprobs: number,
    dEntropies: number,
    logp: number,
    targets: number,
    entropies: number,
    dLogits: number,
    rows: number,
    vocabulary: number,
    temperature: number,
  ): void;
  selfAttention(
    fused: number,
    bias: number,
    p: number,
    out: number,
    batch: number,
    length: number,
    heads: number,
    kvHeads: number,
    headWidth: number,
    scratch: number,
  ): void;
  selfAttentionGradient(
    dout: number,
    fused: number,
    p: number,
    bias: number,
    dFused: number,
    ds: number,
    batch: number,
    length: number,
    heads: number,
    kvHeads: number,
    headWidth: number,
    scratch: number,
  ): void;
  cachedAttention(
    fused: number,
    oldKeys: number,
    oldValues: number,
    bias: number,
    keys: number,
    values: number,
    out: number,
    visible: number,
    weights: number,
    rows: number,
    tokens: number,
    columns: number,
    heads: number,
    kvHeads: number,
    headWidth: number,
  ): void;
}

/** As far as it is used: the types of Node leave it to those of the browser. */
interface WebAssemblyApi {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (
    module: object,
    imports: Readonly<Record<string, Readonly<Record<string, unknown>>>>,
  ) => { readonly exports: unknown };
}

export interface Own {
  readonly module: OwnModule;
  /** One panel of a product: 256 · 8 · 4 bytes, on the heap for good. */
  readonly scratch: number;
}

const PANEL_BYTES = 256 * 8 * 4;

/** One for each backend instance. */
const owns = new WeakMap<WasmBackend, Own>();

/** The module over this backend's memory. The memory may grow: the module sees it as it is, and holds no view of it. */
export function own(backend: WasmBackend): Own {
  let made = owns.get(backend);
  if (made === undefined) {
    const { Module, Instance } = (globalThis as unknown as { readonly WebAssembly: WebAssemblyApi }).WebAssembly;
    const { exports } = new Instance(new Module(Buffer.from(BINARY, 'base64')), {
      env: { memory: backend.wasm.asm.memory },
      rows: { log: Math.log },
    });
    made = { module: exports as OwnModule, scratch: backend.wasm._malloc(PANEL_BYTES) >>> 0 };
    owns.set(backend, made);
  }
  return made;
}

/** A tensor's first byte. */
export function pointer(backend: WasmBackend, info: TensorInfo): number {
  return backend.dataIdMap.get(info.dataId).memoryOffset;
}
