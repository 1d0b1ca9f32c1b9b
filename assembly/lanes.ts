/** @module Four lanes at a time: partial vectors at the end of a row, sums across lanes, and eˣ. */

export function zero(): v128 {
  return f32x4.splat(0);
}

/** The first `count` < 4 elements; the other lanes are `fill`. */
export function loadPart(at: usize, count: i32, fill: f32): v128 {
  let x = f32x4.splat(fill);
  if (count > 0) x = f32x4.replace_lane(x, 0, load<f32>(at));
  if (count > 1) x = f32x4.replace_lane(x, 1, load<f32>(at, 4));
  if (count > 2) x = f32x4.replace_lane(x, 2, load<f32>(at, 8));
  return x;
}

/** The first `count` < 4 lanes. */
export function storePart(at: usize, count: i32, x: v128): void {
  if (count > 0) store<f32>(at, f32x4.extract_lane(x, 0));
  if (count > 1) store<f32>(at, f32x4.extract_lane(x, 1), 4);
  if (count > 2) store<f32>(at, f32x4.extract_lane(x, 2), 8);
}

export function sumOf(x: v128): f32 {
  return f32x4.extract_lane(x, 0) + f32x4.extract_lane(x, 1) + (f32x4.extract_lane(x, 2) + f32x4.extract_lane(x, 3));
}

/** NaN where one lane is. */
export function maxOf(x: v128): f32 {
  return max(
    max(f32x4.extract_lane(x, 0), f32x4.extract_lane(x, 1)),
    max(f32x4.extract_lane(x, 2), f32x4.extract_lane(x, 3)),
  );
}

/** ln 2⁻¹²⁶: below it the result would be no normal float32, and computing with those takes a hundred times as long. */
const LOWEST: f32 = -87.33654;
/** Above it the result is infinite: n, below, would be 128, which is no exponent of a float32. */
const HIGHEST: f32 = 88.37626;
/** 1.5 · 2²³ + 127: a float32 of this size has no fraction, and its lowest bits are those of n + 127, the exponent of 2ⁿ. */
const ROUND: f32 = 12583039;

/**
 * eˣ = 2ⁿ · eʳ with n = round(x / ln 2), and eʳ by the polynomial of Cephes' expf: relative error below 2e-7. 0 below −87.33,
 * infinite above 88.37, NaN for NaN. In short functions, which the compiler inlines where it leaves a long one a call.
 */
export function exp4(x: v128): v128 {
  const c = bounded4(x);
  const rounded = f32x4.add(f32x4.mul(c, f32x4.splat(<f32>Math.LOG2E)), f32x4.splat(ROUND));
  const n = f32x4.sub(rounded, f32x4.splat(ROUND));
  return ranged4(x, f32x4.mul(series4(remainder4(c, n)), i32x4.shl(rounded, 23)));
}

/** pmin and pmax are one instruction each, and in this order they keep NaN. */
function bounded4(x: v128): v128 {
  return f32x4.pmin(f32x4.pmax(x, f32x4.splat(LOWEST)), f32x4.splat(HIGHEST));
}

/** x − n · ln 2; ln 2 in two parts, the first exact in few bits, so that n times it is exact. */
function remainder4(x: v128, n: v128): v128 {
  return f32x4.sub(f32x4.sub(x, f32x4.mul(n, f32x4.splat(0.693359375))), f32x4.mul(n, f32x4.splat(-2.1219444e-4)));
}

function series4(r: v128): v128 {
  let p = f32x4.splat(1.98756915e-4);
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(1.3981999507e-3));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(8.3334519073e-3));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(4.1665795894e-2));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(1.6666665459e-1));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(5.0000001201e-1));
  return f32x4.add(f32x4.add(f32x4.mul(f32x4.mul(p, r), r), r), f32x4.splat(1));
}

function ranged4(x: v128, y: v128): v128 {
  const upper = v128.bitselect(f32x4.splat(Infinity), y, f32x4.gt(x, f32x4.splat(HIGHEST)));
  return v128.andnot(upper, f32x4.lt(x, f32x4.splat(LOWEST)));
}
