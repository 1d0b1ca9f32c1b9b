/** @module The kernels of `own-kernel.ts` on wasm: shapes here, arithmetic in `assembly/`. Outputs are made before any pointer is taken. */
import type { TensorInfo } from '@tensorflow/tfjs';
import { sizeOf, type WasmBackend } from './heap.ts';
import { own, pointer } from './module.ts';

interface Args<Inputs, Attrs = unknown> {
  readonly inputs: Inputs;
  readonly backend: WasmBackend;
  readonly attrs: Attrs;
}

interface Heads {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headWidth: number;
}

type Inputs<Names extends string> = Readonly<Record<Names, TensorInfo>>;

function like(backend: WasmBackend, x: TensorInfo): TensorInfo {
  return backend.makeOutput(x.shape, 'float32');
}

/** x [.., d] → y of its shape and r [.., 1]. */
export function rmsNorm({ inputs, backend, attrs }: Args<Inputs<'x'>, { readonly epsilon: number }>): TensorInfo[] {
  const { x } = inputs;
  const width = x.shape.at(-1) ?? 1;
  const y = like(backend, x);
  const r = backend.makeOutput([...x.shape.slice(0, -1), 1], 'float32');
  const [xAt, yAt, rAt] = [pointer(backend, x), pointer(backend, y), pointer(backend, r)];
  own(backend).module.rmsNorm(xAt, yAt, rAt, sizeOf(r.shape), width, attrs.epsilon);
  return [y, r];
}

export function rmsNormGrad({ inputs, backend }: Args<Inputs<'dy' | 'y' | 'r'>>): TensorInfo {
  const { dy, y, r } = inputs;
  const dx = like(backend, y);
  const [dyAt, yAt, rAt] = [pointer(backend, dy), pointer(backend, y), pointer(backend, r)];
  own(backend).module.rmsNormGradient(dyAt, yAt, rAt, pointer(backend, dx), sizeOf(r.shape), y.shape.at(-1) ?? 1);
  return dx;
}

/** x [.., T, heads·headWidth]; the tables have its last dimensions, and are repeated over the first. */
export function rotate({
  inputs,
  backend,
  attrs,
}: Args<Inputs<'x' | 'cos' | 'sin'>, { readonly headWidth: number; readonly backwards: boolean }>): TensorInfo {
  const { x, cos, sin } = inputs;
  const out = like(backend, x);
  const width = x.shape.at(-1) ?? 0;
  const rows = sizeOf(x.shape.slice(0, -1));
  own(backend).module.rotate(
    pointer(backend, x),
    pointer(backend, cos),
    pointer(backend, sin),
    pointer(backend, out),
    rows,
    sizeOf(cos.shape.slice(0, -1)),
    width / attrs.headWidth,
    attrs.headWidth,
    Number(attrs.backwards),
  );
  return out;
}

/** fused [B, T, (heads + 2·kvHeads)·headWidth], bias [T, T] → context [B·T, heads·headWidth] and p [B·heads, T, T]. */
export function selfAttention({ inputs, backend, attrs }: Args<Inputs<'fused' | 'bias'>, Heads>): TensorInfo[] {
  const { heads, kvHeads, headWidth } = attrs;
  const [B = 0, T = 0] = inputs.fused.shape;
  const out = backend.makeOutput([B * T, heads * headWidth], 'float32');
  const p = backend.makeOutput([B * heads, T, T], 'float32');
  const { module, scratch } = own(backend);
  const [fused, bias] = [pointer(backend, inputs.fused), pointer(backend, inputs.bias)];
  module.selfAttention(
    fused,
    bias,
    pointer(backend, p),
    pointer(backend, out),
    B,
    T,
    heads,
    kvHeads,
    headWidth,
    scratch,
  );
  return [out, p];
}

/** Rows of queries that `assembly/attention.ts` takes together. */
const BLOCK = 32;

export function selfAttentionGrad({
  inputs,
  backend,
  attrs,
}: Args<Inputs<'dy' | 'fused' | 'p' | 'bias'>, Heads>): TensorInfo {
  const { heads, kvHeads, headWidth } = attrs;
  const [B = 0, T = 0] = inputs.fused.shape;
  const dFused = like(backend, inputs.fused);
  const ds = backend.makeOutput([BLOCK, T], 'float32');
  const { module, scratch } = own(backend);
  module.selfAttentionGradient(
    pointer(backend, inputs.dy),
    pointer(backend, inputs.fused),
    pointer(backend, inputs.p),
    pointer(backend, inputs.bias),
    pointer(backend, dFused),
    pointer(backend, ds),
    B,
    T,
    heads,
    kvHeads,
    headWidth,
    scratch,
  );
  backend.disposeData(ds.dataId);
  return dFused;
}

/**
 * fused [R, T, …], bias [R, 1, T, C + T], and where C > 0 the caches [R·kvHeads, C, headWidth] → context [R·T, heads·headWidth] and
 * the caches with T columns more.
 */
export function cachedAttention({
  inputs,
  backend,
  attrs,
}: Args<Inputs<'fused' | 'bias'> & Partial<Inputs<'keys' | 'values'>>, Heads>): TensorInfo[] {
  const { heads, kvHeads, headWidth } = attrs;
  const { fused, bias, keys, values } = inputs;
  const [R = 0, T = 0] = fused.shape;
  const C = keys?.shape[1] ?? 0;
  const out = backend.makeOutput([R * T, heads * headWidth], 'float32');
  const newKeys = backend.makeOutput([R * kvHeads, C + T, headWidth], 'float32');
  const newValues = backend.makeOutput([R * kvHeads, C + T, headWidth], 'float32');
  const visible = backend.makeOutput([C + T], 'int32');
  const weights = backend.makeOutput([C + T], 'float32');
  own(backend).module.cachedAttention(
    pointer(backend, fused),
    keys === undefined ? 0 : pointer(backend, keys),
    values === undefined ? 0 : pointer(backend, values),
    pointer(backend, bias),
    pointer(backend, newKeys),
    pointer(backend, newValues),
    pointer(backend, out),
    pointer(backend, visible),
    pointer(backend, weights),
    R,
    T,
    C,
    heads,
    kvHeads,
    headWidth,
  );
  backend.disposeData(visible.dataId);
  backend.disposeData(weights.dataId);
  return [out, newKeys, newValues];
}

/** logits [N, V] → logprobs of the targets [N], or [2, N] with the entropies after them; and ln p of every token [N, V]. */
export function scoredLogprobs({
  inputs,
  backend,
  attrs,
}: Args<
  Inputs<'logits' | 'targets'> & Partial<Inputs<'masks' | 'index'>>,
  { readonly temperature: number; readonly entropy: boolean }
>): TensorInfo[] {
  const { logits, targets, masks, index } = inputs;
  const [rows = 0, vocabulary = 0] = logits.shape;
  checkBelow(backend, targets, vocabulary);
  if (masks !== undefined && index !== undefined) checkBelow(backend, index, masks.shape[0] ?? 0);
  const value = backend.makeOutput(attrs.entropy ? [2, rows] : [rows], 'float32');
  const logp = like(backend, logits);
  own(backend).module.logprobs(
    pointer(backend, logits),
    pointer(backend, targets),
    masks === undefined ? 0 : pointer(backend, masks),
    index === undefined ? 0 : pointer(backend, index),
    pointer(backend, logp),
    pointer(backend, value),
    attrs.entropy ? pointer(backend, value) + 4 * rows : 0,
    rows,
    vocabulary,
    attrs.temperature,
  );
  return [value, logp];
}

/** Before anything is allocated that an error would leave behind. */
function checkBelow(backend: WasmBackend, indices: TensorInfo, below: number): void {
  const at = pointer(backend, indices) >>> 2;
  for (const i of backend.wasm.HEAP32.subarray(at, at + sizeOf(indices.shape))) {
    if (i < 0 || i >= below) throw new Error(`logprobs: expected indices within [0, ${below}), found ${i}`);
  }
}

/** dy of the shape of `value`. */
export function scoredLogprobsGrad({
  inputs,
  backend,
  attrs,
}: Args<Inputs<'dy' | 'value' | 'logp' | 'targets'>, { readonly temperature: number }>): TensorInfo {
  const { dy, value, logp, targets } = inputs;
  const [rows = 0, vocabulary = 0] = logp.shape;
  const dLogits = like(backend, logp);
  const second = value.shape.length === 2;
  own(backend).module.logprobsGradient(
    pointer(backend, dy),
    second ? pointer(backend, dy) + 4 * rows : 0,
    pointer(backend, logp),
    pointer(backend, targets),
    second ? pointer(backend, value) + 4 * rows : 0,
    pointer(backend, dLogits),
    rows,
    vocabulary,
    attrs.temperature,
  );
  return dLogits;
}
