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
/** Above it the result is infinite. */
const HIGHEST: f32 = 89;

/**
 * eˣ = 2ⁿ · eʳ with n = round(x / ln 2), and eʳ by the polynomial of Cephes' expf: relative error below 2e-7. 0 below −87.33,
 * infinite above 88.72, NaN for NaN.
 */
export function exp4(x: v128): v128 {
  const tiny = f32x4.lt(x, f32x4.splat(LOWEST));
  const c = f32x4.min(f32x4.max(x, f32x4.splat(LOWEST)), f32x4.splat(HIGHEST));
  const n = f32x4.nearest(f32x4.mul(c, f32x4.splat(<f32>Math.LOG2E)));
  // ln 2 in two parts, the first exact in few bits, so that n times it is exact.
  const r = f32x4.sub(f32x4.sub(c, f32x4.mul(n, f32x4.splat(0.693359375))), f32x4.mul(n, f32x4.splat(-2.1219444e-4)));
  let p = f32x4.splat(1.98756915e-4);
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(1.3981999507e-3));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(8.3334519073e-3));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(4.1665795894e-2));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(1.6666665459e-1));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(5.0000001201e-1));
  const y = f32x4.add(f32x4.add(f32x4.mul(f32x4.mul(p, r), r), r), f32x4.splat(1));
  // 2ⁿ in two factors: n may be 128, which is no exponent of a float32.
  const whole = i32x4.trunc_sat_f32x4_s(n);
  const half = i32x4.shr_s(whole, 1);
  const scaled = f32x4.mul(f32x4.mul(y, power(half)), power(i32x4.sub(whole, half)));
  return v128.andnot(scaled, tiny);
}

/** 2ⁿ for whole n in [−126, 127]. */
function power(n: v128): v128 {
  return i32x4.shl(i32x4.add(n, i32x4.splat(127)), 23);
}

export function sigmoid4(x: v128): v128 {
  const one = f32x4.splat(1);
  return f32x4.div(one, f32x4.add(one, exp4(f32x4.neg(x))));
}
