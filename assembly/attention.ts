/**
 * @module Attention with grouped queries over the fused projection as it lies, [B, T, heads + 2·kvHeads heads of headWidth]: nothing is
 * cut out or transposed. `self` is the pass of training with its gradient, `cached` that of decoding. Pointers in bytes.
 */
import { product } from './gemm';
import { exp4, loadPart, maxOf, storePart, sumOf, zero } from './lanes';

/** A column whose bias is below this is not looked at: its weight would be e^(−10⁸) = 0. */
const HIDDEN: f32 = -1e8;
/** Rows of queries taken together; what all of them leave out on the right is not computed. */
const BLOCK = 32;

/**
 * p = softmax(q·kᵀ + bias) as [B, heads, T, T], and out = p·v as [B, T, heads·headWidth]. A row's columns after the last that is
 * not hidden have p = 0; `bias` is [T, T].
 */
export function selfAttention(
  fused: usize,
  bias: usize,
  p: usize,
  out: usize,
  B: i32,
  T: i32,
  heads: i32,
  kvHeads: i32,
  headWidth: i32,
  scratch: usize,
): void {
  const head = (<usize>headWidth) << 2;
  const row = head * <usize>(heads + 2 * kvHeads);
  const outRow = head * <usize>heads;
  const pRow = (<usize>T) << 2;
  const group = heads / kvHeads;
  for (let b = 0; b < B; b++) {
    for (let h = 0; h < heads; h++) {
      const q = fused + <usize>h * head;
      const k = fused + <usize>(heads + h / group) * head;
      const v = k + <usize>kvHeads * head;
      for (let t = 0; t < T; t += BLOCK) {
        const rows = min(BLOCK, T - t);
        const from = <usize>t * row;
        const columns = reach(bias, t, rows, T);
        product(q + from, k, p, rows, headWidth, columns, row, 4, row, true, pRow, false, scratch);
        for (let i = 0; i < rows; i++) softmaxRow(p + <usize>i * pRow, bias + <usize>(t + i) * pRow, T, columns);
        product(
          p,
          v,
          out + <usize>t * outRow + <usize>h * head,
          rows,
          columns,
          headWidth,
          pRow,
          4,
          row,
          false,
          outRow,
          false,
          scratch,
        );
        p += <usize>rows * pRow;
      }
    }
    fused += <usize>T * row;
    out += <usize>T * outRow;
  }
}

/** The columns up to the last that one of these rows sees; all where none sees any. */
function reach(bias: usize, t: i32, rows: i32, T: i32): i32 {
  let most = 0;
  for (let i = t; i < t + rows; i++) {
    let columns = T;
    while (columns > most && load<f32>(bias + ((<usize>(i * T + columns - 1)) << 2)) < HIDDEN) columns--;
    most = columns;
  }
  return most === 0 ? T : most;
}

/** The first `columns` of a row of `T` become their softmax, the others 0. */
function softmaxRow(x: usize, bias: usize, T: i32, columns: i32): void {
  const tail = columns & 3;
  const end = (<usize>(columns - tail)) << 2;
  let most = f32x4.splat(-Infinity);
  for (let at: usize = 0; at < end; at += 16) {
    const s = f32x4.add(v128.load(x + at), v128.load(bias + at));
    v128.store(x + at, s);
    most = f32x4.pmax(most, s);
  }
  let last = f32x4.add(loadPart(x + end, tail, -Infinity), loadPart(bias + end, tail, 0));
  const largest = f32x4.splat(maxOf(f32x4.pmax(most, last)));
  let sums = zero();
  for (let at: usize = 0; at < end; at += 16) {
    const e = exp4(f32x4.sub(v128.load(x + at), largest));
    v128.store(x + at, e);
    sums = f32x4.add(sums, e);
  }
  last = exp4(f32x4.sub(last, largest));
  const total = f32x4.splat(sumOf(f32x4.add(sums, last)));
  for (let at: usize = 0; at < end; at += 16) v128.store(x + at, f32x4.div(v128.load(x + at), total));
  storePart(x + end, tail, f32x4.div(last, total));
  memory.fill(x + ((<usize>columns) << 2), 0, (<usize>(T - columns)) << 2);
}

/**
 * dfused from dout, with dv = pᵀ·dout, dp = dout·vᵀ, ds = p ∘ (dp − rowsum(p ∘ dp)), dq = ds·k, dk = dsᵀ·q; keys and values add up
 * over the queries that share them.
 * @param ds BLOCK · T · 4 bytes.
 */
export function selfAttentionGradient(
  dout: usize,
  fused: usize,
  p: usize,
  bias: usize,
  dFused: usize,
  ds: usize,
  B: i32,
  T: i32,
  heads: i32,
  kvHeads: i32,
  headWidth: i32,
  scratch: usize,
): void {
  const head = (<usize>headWidth) << 2;
  const row = head * <usize>(heads + 2 * kvHeads);
  const outRow = head * <usize>heads;
  const pRow = (<usize>T) << 2;
  const group = heads / kvHeads;
  memory.fill(dFused, 0, <usize>(B * T) * row);
  for (let b = 0; b < B; b++) {
    for (let h = 0; h < heads; h++) {
      const q = <usize>h * head;
      const k = <usize>(heads + h / group) * head;
      const v = k + <usize>kvHeads * head;
      for (let t = 0; t < T; t += BLOCK) {
        const rows = min(BLOCK, T - t);
        const from = <usize>t * row;
        const d = dout + <usize>t * outRow + q;
        const columns = reach(bias, t, rows, T);
        // dv and dk: the rows of this block are their inner index.
        product(p, d, dFused + v, columns, rows, headWidth, 4, pRow, outRow, false, row, true, scratch);
        product(d, fused + v, ds, rows, headWidth, columns, outRow, 4, row, true, pRow, false, scratch);
        for (let i = 0; i < rows; i++) softmaxRowGradient(p + <usize>i * pRow, ds + <usize>i * pRow, columns);
        product(ds, fused + k, dFused + from + q, rows, columns, headWidth, pRow, 4, row, false, row, false, scratch);
        product(ds, fused + from + q, dFused + k, columns, rows, headWidth, 4, pRow, row, false, row, true, scratch);
        p += <usize>rows * pRow;
      }
    }
    fused += <usize>T * row;
    dFused += <usize>T * row;
    dout += <usize>T * outRow;
  }
}

/** dp becomes ds. */
function softmaxRowGradient(p: usize, dp: usize, columns: i32): void {
  const tail = columns & 3;
  const end = (<usize>(columns - tail)) << 2;
  let products = zero();
  for (let at: usize = 0; at < end; at += 16) {
    products = f32x4.add(products, f32x4.mul(v128.load(p + at), v128.load(dp + at)));
  }
  const lastP = loadPart(p + end, tail, 0);
  const lastDp = loadPart(dp + end, tail, 0);
  const sum = f32x4.splat(sumOf(f32x4.add(products, f32x4.mul(lastP, lastDp))));
  for (let at: usize = 0; at < end; at += 16) {
    v128.store(dp + at, f32x4.mul(v128.load(p + at), f32x4.sub(v128.load(dp + at), sum)));
  }
  storePart(dp + end, tail, f32x4.mul(lastP, f32x4.sub(lastDp, sum)));
}

/**
 * New tokens [R, T] of the fused projection over a cache of C columns a row, to which theirs are appended: `keys` and `values`
 * become [R, kvHeads, C + T, headWidth], `out` [R, T, heads·headWidth]. `bias` is [R, T, C + T].
 *
 * What a row gives depends on its own tokens alone, to the bit: hidden columns are passed over, not added up as zeros.
 * @param visible (C + T) · 4 bytes. @param weights the same.
 */
export function cachedAttention(
  fused: usize,
  oldKeys: usize,
  oldValues: usize,
  bias: usize,
  keys: usize,
  values: usize,
  out: usize,
  visible: usize,
  weights: usize,
  R: i32,
  T: i32,
  C: i32,
  heads: i32,
  kvHeads: i32,
  headWidth: i32,
): void {
  const head = (<usize>headWidth) << 2;
  const row = head * <usize>(heads + 2 * kvHeads);
  const group = heads / kvHeads;
  const cached = <usize>C * head;
  const grown = <usize>(C + T) * head;
  for (let r = 0; r < R; r++) {
    const ownKeys = keys;
    const ownValues = values;
    for (let h = 0; h < kvHeads; h++) {
      if (C > 0) {
        memory.copy(keys, oldKeys, cached);
        memory.copy(values, oldValues, cached);
        oldKeys += cached;
        oldValues += cached;
      }
      for (let t = 0; t < T; t++) {
        const token = fused + <usize>t * row + <usize>(heads + h) * head;
        memory.copy(keys + cached + <usize>t * head, token, head);
        memory.copy(values + cached + <usize>t * head, token + <usize>kvHeads * head, head);
      }
      keys += grown;
      values += grown;
    }
    for (let t = 0; t < T; t++) {
      const count = seen(bias, C + T, visible);
      for (let h = 0; h < heads; h++) {
        const part = <usize>(h / group) * grown;
        attend(
          fused + <usize>h * head,
          ownKeys + part,
          ownValues + part,
          bias,
          visible,
          count,
          headWidth,
          weights,
          out,
        );
        out += head;
      }
      bias += (<usize>(C + T)) << 2;
      fused += row;
    }
  }
}

/** Lists the columns that are not hidden. @returns how many. */
function seen(bias: usize, columns: i32, visible: usize): i32 {
  let count = 0;
  for (let c = 0; c < columns; c++) {
    if (load<f32>(bias + ((<usize>c) << 2)) < HIDDEN) continue;
    store<i32>(visible + ((<usize>count) << 2), c);
    count++;
  }
  return count;
}

/** One query head of one token over its `count` visible columns. */
function attend(
  q: usize,
  keys: usize,
  values: usize,
  bias: usize,
  visible: usize,
  count: i32,
  headWidth: i32,
  weights: usize,
  out: usize,
): void {
  const head = (<usize>headWidth) << 2;
  const tail = headWidth & 3;
  const end = (<usize>(headWidth - tail)) << 2;
  let largest: f32 = -Infinity;
  for (let i: usize = 0; i < (<usize>count) << 2; i += 4) {
    const column = <usize>load<i32>(visible + i);
    const k = keys + column * head;
    let sum = zero();
    for (let at: usize = 0; at < end; at += 16) {
      sum = f32x4.add(sum, f32x4.mul(v128.load(q + at), v128.load(k + at)));
    }
    if (tail > 0) sum = f32x4.add(sum, f32x4.mul(loadPart(q + end, tail, 0), loadPart(k + end, tail, 0)));
    const score: f32 = sumOf(sum) + load<f32>(bias + (column << 2));
    store<f32>(weights + i, score);
    largest = max(largest, score);
  }
  const most = f32x4.splat(largest);
  let sums = zero();
  const rest = count & 3;
  const whole = (<usize>(count - rest)) << 2;
  for (let i: usize = 0; i < whole; i += 16) {
    const e = exp4(f32x4.sub(v128.load(weights + i), most));
    v128.store(weights + i, e);
    sums = f32x4.add(sums, e);
  }
  const last = exp4(f32x4.sub(loadPart(weights + whole, rest, -Infinity), most));
  storePart(weights + whole, rest, last);
  const total = f32x4.splat(sumOf(f32x4.add(sums, last)));
  for (let at: usize = 0; at < end; at += 16) {
    let sum = zero();
    for (let i: usize = 0; i < (<usize>count) << 2; i += 4) {
      const v = values + <usize>load<i32>(visible + i) * head;
      sum = f32x4.add(sum, f32x4.mul(v128.load_splat<f32>(weights + i), v128.load(v + at)));
    }
    v128.store(out + at, f32x4.div(sum, total));
  }
  if (tail > 0) {
    let sum = zero();
    for (let i: usize = 0; i < (<usize>count) << 2; i += 4) {
      const v = values + <usize>load<i32>(visible + i) * head;
      sum = f32x4.add(sum, f32x4.mul(v128.load_splat<f32>(weights + i), loadPart(v + end, tail, 0)));
    }
    storePart(out + end, tail, f32x4.div(sum, total));
  }
}
