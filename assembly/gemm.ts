/**
 * @module Products of float32 matrices, batched, either side transposed, read and written in place at any row stride.
 *
 * Every element is Σₚ a(i, p)·b(p, j), multiplied and added in single precision in the order of p, in whatever tile it falls: it is a
 * function of its row of A and its column of B alone, to the bit.
 */

/** Inner indices of a panel: 256 · 8 · 4 bytes of B stay in the first-level cache. */
const INNER = 256;
/** Columns of a panel. */
const COLUMNS = 8;
/** From so many rows on a panel of B is copied together first, even where its rows could be read as they lie. */
const PACK_FROM = 12;

/**
 * For each batch out(i, j) = [out(i, j) +] Σₚ a(i, p)·b(p, j), i < m, j < n, p < k.
 *
 * All pointers and strides are in bytes. `aRow` and `aInner` part A's elements along i and along p, so that one of them is 4. B lies
 * as [k, n] with rows `bRow` apart or, where `transposeB`, as [n, k]; out's rows are `outRow` apart.
 * @param scratch INNER · COLUMNS · 4 bytes.
 */
export function gemm(
  a: usize,
  b: usize,
  out: usize,
  batch: i32,
  m: i32,
  k: i32,
  n: i32,
  aStep: usize,
  aRow: usize,
  aInner: usize,
  bStep: usize,
  bRow: usize,
  transposeB: bool,
  outStep: usize,
  outRow: usize,
  accumulate: bool,
  scratch: usize,
): void {
  for (let i = 0; i < batch; i++) {
    product(a, b, out, m, k, n, aRow, aInner, bRow, transposeB, outRow, accumulate, scratch);
    a += aStep;
    b += bStep;
    out += outStep;
  }
}

export function product(
  a: usize,
  b: usize,
  out: usize,
  m: i32,
  k: i32,
  n: i32,
  aRow: usize,
  aInner: usize,
  bRow: usize,
  transposeB: bool,
  outRow: usize,
  accumulate: bool,
  scratch: usize,
): void {
  let add = accumulate;
  for (let from = 0; from < k; from += INNER) {
    const inner = min(INNER, k - from);
    const aFrom = a + <usize>from * aInner;
    for (let j = 0; j < n; j += COLUMNS) {
      const columns = min(COLUMNS, n - j);
      let panel = scratch;
      let panelStep: usize = COLUMNS << 2;
      if (transposeB) {
        packTransposed(b + <usize>j * bRow + ((<usize>from) << 2), bRow, scratch, inner, columns);
      } else {
        const at = b + <usize>from * bRow + ((<usize>j) << 2);
        if (columns === COLUMNS && m < PACK_FROM) {
          panel = at;
          panelStep = bRow;
        } else {
          pack(at, bRow, scratch, inner, columns);
        }
      }
      let x = aFrom;
      let to = out + ((<usize>j) << 2);
      let i = 0;
      for (; i + 3 < m; i += 4) {
        tile4(x, aRow, aInner, panel, panelStep, inner, to, outRow, columns, add);
        x += aRow << 2;
        to += outRow << 2;
      }
      if (i + 1 < m) {
        tile2(x, aRow, aInner, panel, panelStep, inner, to, outRow, columns, add);
        x += aRow << 1;
        to += outRow << 1;
        i += 2;
      }
      if (i < m) tile1(x, aInner, panel, panelStep, inner, to, columns, add);
    }
    add = true;
  }
}

/** Up to eight columns of B's rows, side by side; the rest of each eight is 0. */
function pack(from: usize, row: usize, to: usize, inner: i32, columns: i32): void {
  if (columns === COLUMNS) {
    for (let p = 0; p < inner; p++) {
      v128.store(to, v128.load(from));
      v128.store(to, v128.load(from, 16), 16);
      from += row;
      to += 32;
    }
    return;
  }
  for (let p = 0; p < inner; p++) {
    v128.store(to, f32x4.splat(0));
    v128.store(to, f32x4.splat(0), 16);
    for (let j = 0; j < columns; j++) store<f32>(to + ((<usize>j) << 2), load<f32>(from + ((<usize>j) << 2)));
    from += row;
    to += 32;
  }
}

/** The same of a B that lies as [n, k]: four of its rows, which are columns here, turn at a time. */
function packTransposed(from: usize, row: usize, to: usize, inner: i32, columns: i32): void {
  for (let j = 0; j < COLUMNS; j += 4) {
    const r0 = from + <usize>j * row;
    const column = to + ((<usize>j) << 2);
    const whole = j + 4 <= columns ? inner & ~3 : 0;
    const r1 = r0 + row;
    const r2 = r1 + row;
    const r3 = r2 + row;
    for (let p = 0; p < whole; p += 4) {
      const at = (<usize>p) << 2;
      const x0 = v128.load(r0 + at);
      const x1 = v128.load(r1 + at);
      const x2 = v128.load(r2 + at);
      const x3 = v128.load(r3 + at);
      const low01 = v128.shuffle<f32>(x0, x1, 0, 4, 1, 5);
      const high01 = v128.shuffle<f32>(x0, x1, 2, 6, 3, 7);
      const low23 = v128.shuffle<f32>(x2, x3, 0, 4, 1, 5);
      const high23 = v128.shuffle<f32>(x2, x3, 2, 6, 3, 7);
      const place = column + ((<usize>p) << 5);
      v128.store(place, v128.shuffle<f64>(low01, low23, 0, 2));
      v128.store(place, v128.shuffle<f64>(low01, low23, 1, 3), 32);
      v128.store(place, v128.shuffle<f64>(high01, high23, 0, 2), 64);
      v128.store(place, v128.shuffle<f64>(high01, high23, 1, 3), 96);
    }
    for (let p = whole; p < inner; p++) {
      for (let c = 0; c < 4; c++) {
        const x: f32 = j + c < columns ? load<f32>(r0 + <usize>c * row + ((<usize>p) << 2)) : 0;
        store<f32>(column + ((<usize>p) << 5) + ((<usize>c) << 2), x);
      }
    }
  }
}

function madd(x: v128, y: v128, sum: v128): v128 {
  return f32x4.add(sum, f32x4.mul(x, y));
}

function start(out: usize, columns: i32, from: i32, add: bool): v128 {
  if (!add || from >= columns) return f32x4.splat(0);
  out += (<usize>from) << 2;
  if (from + 4 <= columns) return v128.load(out);
  let x = f32x4.splat(0);
  x = f32x4.replace_lane(x, 0, load<f32>(out));
  if (from + 1 < columns) x = f32x4.replace_lane(x, 1, load<f32>(out, 4));
  if (from + 2 < columns) x = f32x4.replace_lane(x, 2, load<f32>(out, 8));
  return x;
}

function finish(out: usize, columns: i32, low: v128, high: v128): void {
  if (columns === COLUMNS) {
    v128.store(out, low);
    v128.store(out, high, 16);
    return;
  }
  if (columns >= 4) {
    v128.store(out, low);
    low = high;
    out += 16;
    columns -= 4;
  }
  if (columns > 0) store<f32>(out, f32x4.extract_lane(low, 0));
  if (columns > 1) store<f32>(out, f32x4.extract_lane(low, 1), 4);
  if (columns > 2) store<f32>(out, f32x4.extract_lane(low, 2), 8);
}

function tile4(
  a: usize,
  aRow: usize,
  aInner: usize,
  b: usize,
  bStep: usize,
  inner: i32,
  out: usize,
  outRow: usize,
  columns: i32,
  add: bool,
): void {
  const out1 = out + outRow;
  const out2 = out1 + outRow;
  const out3 = out2 + outRow;
  let c00 = start(out, columns, 0, add);
  let c01 = start(out, columns, 4, add);
  let c10 = start(out1, columns, 0, add);
  let c11 = start(out1, columns, 4, add);
  let c20 = start(out2, columns, 0, add);
  let c21 = start(out2, columns, 4, add);
  let c30 = start(out3, columns, 0, add);
  let c31 = start(out3, columns, 4, add);
  let a0 = a;
  let a1 = a0 + aRow;
  let a2 = a1 + aRow;
  let a3 = a2 + aRow;
  for (let p = 0; p < inner; p++) {
    const b0 = v128.load(b);
    const b1 = v128.load(b, 16);
    const x0 = v128.load_splat<f32>(a0);
    c00 = madd(x0, b0, c00);
    c01 = madd(x0, b1, c01);
    const x1 = v128.load_splat<f32>(a1);
    c10 = madd(x1, b0, c10);
    c11 = madd(x1, b1, c11);
    const x2 = v128.load_splat<f32>(a2);
    c20 = madd(x2, b0, c20);
    c21 = madd(x2, b1, c21);
    const x3 = v128.load_splat<f32>(a3);
    c30 = madd(x3, b0, c30);
    c31 = madd(x3, b1, c31);
    a0 += aInner;
    a1 += aInner;
    a2 += aInner;
    a3 += aInner;
    b += bStep;
  }
  finish(out, columns, c00, c01);
  finish(out1, columns, c10, c11);
  finish(out2, columns, c20, c21);
  finish(out3, columns, c30, c31);
}

function tile2(
  a: usize,
  aRow: usize,
  aInner: usize,
  b: usize,
  bStep: usize,
  inner: i32,
  out: usize,
  outRow: usize,
  columns: i32,
  add: bool,
): void {
  const out1 = out + outRow;
  let c00 = start(out, columns, 0, add);
  let c01 = start(out, columns, 4, add);
  let c10 = start(out1, columns, 0, add);
  let c11 = start(out1, columns, 4, add);
  let a0 = a;
  let a1 = a0 + aRow;
  for (let p = 0; p < inner; p++) {
    const b0 = v128.load(b);
    const b1 = v128.load(b, 16);
    const x0 = v128.load_splat<f32>(a0);
    c00 = madd(x0, b0, c00);
    c01 = madd(x0, b1, c01);
    const x1 = v128.load_splat<f32>(a1);
    c10 = madd(x1, b0, c10);
    c11 = madd(x1, b1, c11);
    a0 += aInner;
    a1 += aInner;
    b += bStep;
  }
  finish(out, columns, c00, c01);
  finish(out1, columns, c10, c11);
}

function tile1(a: usize, aInner: usize, b: usize, bStep: usize, inner: i32, out: usize, columns: i32, add: bool): void {
  let c0 = start(out, columns, 0, add);
  let c1 = start(out, columns, 4, add);
  for (let p = 0; p < inner; p++) {
    const x = v128.load_splat<f32>(a);
    c0 = madd(x, v128.load(b), c0);
    c1 = madd(x, v128.load(b, 16), c1);
    a += aInner;
    b += bStep;
  }
  finish(out, columns, c0, c1);
}
