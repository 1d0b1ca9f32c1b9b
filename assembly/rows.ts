/** @module Row by row: RMSNorm, rotary positions, and logprobs under a grammar, each with its gradient. Pointers in bytes, rows contiguous. */
import { exp4, loadPart, maxOf, storePart, sumOf, zero } from './lanes';

/** Math.log of the host: one call a row. */
declare function log(x: f64): f64;

/** y = x · r with r = 1/√(mean(x²) + ε), for `rows` rows of `width`. */
export function rmsNorm(x: usize, y: usize, r: usize, rows: i32, width: i32, epsilon: f32): void {
  const tail = width & 3;
  const end = (<usize>(width - tail)) << 2;
  for (let row = 0; row < rows; row++) {
    let squares = zero();
    for (let at: usize = 0; at < end; at += 16) {
      const v = v128.load(x + at);
      squares = f32x4.add(squares, f32x4.mul(v, v));
    }
    const last = loadPart(x + end, tail, 0);
    squares = f32x4.add(squares, f32x4.mul(last, last));
    const scale: f32 = <f32>1 / sqrt<f32>(sumOf(squares) / <f32>width + epsilon);
    const scales = f32x4.splat(scale);
    for (let at: usize = 0; at < end; at += 16) v128.store(y + at, f32x4.mul(v128.load(x + at), scales));
    storePart(y + end, tail, f32x4.mul(last, scales));
    store<f32>(r, scale);
    x += (<usize>width) << 2;
    y += (<usize>width) << 2;
    r += 4;
  }
}

/** dx = r · (dy − y · mean(dy · y)). */
export function rmsNormGradient(dy: usize, y: usize, r: usize, dx: usize, rows: i32, width: i32): void {
  const tail = width & 3;
  const end = (<usize>(width - tail)) << 2;
  for (let row = 0; row < rows; row++) {
    let products = zero();
    for (let at: usize = 0; at < end; at += 16) {
      products = f32x4.add(products, f32x4.mul(v128.load(dy + at), v128.load(y + at)));
    }
    const lastY = loadPart(y + end, tail, 0);
    const lastDy = loadPart(dy + end, tail, 0);
    products = f32x4.add(products, f32x4.mul(lastDy, lastY));
    const mean = f32x4.splat(sumOf(products) / <f32>width);
    const scales = f32x4.splat(load<f32>(r));
    for (let at: usize = 0; at < end; at += 16) {
      const change = f32x4.sub(v128.load(dy + at), f32x4.mul(v128.load(y + at), mean));
      v128.store(dx + at, f32x4.mul(change, scales));
    }
    storePart(dx + end, tail, f32x4.mul(f32x4.sub(lastDy, f32x4.mul(lastY, mean)), scales));
    dy += (<usize>width) << 2;
    y += (<usize>width) << 2;
    dx += (<usize>width) << 2;
    r += 4;
  }
}

/**
 * Turns every pair (x₁, x₂), `headWidth`/2 apart, of every head: (x₁c₁ − x₂s₁, x₂c₂ + x₁s₂), or backwards, for the gradient,
 * (x₁c₁ + x₂s₂, x₂c₂ − x₁s₁). Row i takes row i mod `tableRows` of the tables.
 */
export function rotate(
  x: usize,
  cos: usize,
  sin: usize,
  out: usize,
  rows: i32,
  tableRows: i32,
  heads: i32,
  headWidth: i32,
  backwards: bool,
): void {
  const half = headWidth >> 1;
  const step = (<usize>half) << 2;
  const rowBytes = (<usize>(heads * headWidth)) << 2;
  for (let row = 0; row < rows; row++) {
    const table = <usize>(row % tableRows) * rowBytes;
    let at: usize = 0;
    for (let head = 0; head < heads; head++) {
      for (let left = half; left > 0; left -= 4) {
        const there = at + step;
        const whole = left >= 4;
        const x1 = whole ? v128.load(x + at) : loadPart(x + at, left, 0);
        const x2 = whole ? v128.load(x + there) : loadPart(x + there, left, 0);
        const c1 = whole ? v128.load(cos + table + at) : loadPart(cos + table + at, left, 0);
        const c2 = whole ? v128.load(cos + table + there) : loadPart(cos + table + there, left, 0);
        const s1 = whole ? v128.load(sin + table + at) : loadPart(sin + table + at, left, 0);
        const s2 = whole ? v128.load(sin + table + there) : loadPart(sin + table + there, left, 0);
        const y1 = backwards
          ? f32x4.add(f32x4.mul(x1, c1), f32x4.mul(x2, s2))
          : f32x4.sub(f32x4.mul(x1, c1), f32x4.mul(x2, s1));
        const y2 = backwards
          ? f32x4.sub(f32x4.mul(x2, c2), f32x4.mul(x1, s1))
          : f32x4.add(f32x4.mul(x2, c2), f32x4.mul(x1, s2));
        if (whole) {
          v128.store(out + at, y1);
          v128.store(out + there, y2);
        } else {
          storePart(out + at, left, y1);
          storePart(out + there, left, y2);
        }
        at += whole ? 16 : (<usize>left) << 2;
      }
      at += step;
    }
    x += rowBytes;
    out += rowBytes;
  }
}

/**
 * ln p of every token under softmax(z / T) over the allowed ones, of each row's target, and the entropy H. A forbidden logit is
 * replaced by what stands in its place in the row's mask, which is below 0.
 * @param masks 0 where all is allowed. @param entropies 0 where they are not wanted.
 */
export function logprobs(
  logits: usize,
  targets: usize,
  masks: usize,
  maskIndex: usize,
  logp: usize,
  picked: usize,
  entropies: usize,
  rows: i32,
  vocabulary: i32,
  temperature: f32,
): void {
  const tail = vocabulary & 3;
  const end = (<usize>(vocabulary - tail)) << 2;
  const rowBytes = (<usize>vocabulary) << 2;
  const divisor = f32x4.splat(temperature);
  for (let row = 0; row < rows; row++) {
    const mask: usize = masks === 0 ? 0 : masks + <usize>load<i32>(maskIndex) * rowBytes;
    let most = f32x4.splat(-Infinity);
    for (let at: usize = 0; at < end; at += 16) {
      let z = v128.load(logits + at);
      if (mask !== 0) z = allowed(z, v128.load(mask + at));
      v128.store(logp + at, z);
      most = f32x4.pmax(most, z);
    }
    let last = loadPart(logits + end, tail, -Infinity);
    if (mask !== 0) last = allowed(last, loadPart(mask + end, tail, 0));
    const largest = f32x4.splat(maxOf(f32x4.pmax(most, last)));
    let sums = zero();
    let weighted = zero();
    for (let at: usize = 0; at < end; at += 16) {
      const relative = f32x4.div(f32x4.sub(v128.load(logp + at), largest), divisor);
      v128.store(logp + at, relative);
      const e = exp4(relative);
      sums = f32x4.add(sums, e);
      weighted = f32x4.add(weighted, f32x4.mul(e, relative));
    }
    const relative = f32x4.div(f32x4.sub(last, largest), divisor);
    storePart(logp + end, tail, relative);
    last = exp4(relative);
    // Lanes beyond the row: 0, and not −∞ · 0, which is NaN.
    weighted = f32x4.add(weighted, f32x4.mul(last, loadPart(logp + end, tail, 0)));
    const sum: f32 = sumOf(f32x4.add(sums, last));
    const total: f32 = <f32>log(<f64>sum);
    for (let at: usize = 0; at < end; at += 16) {
      v128.store(logp + at, f32x4.sub(v128.load(logp + at), f32x4.splat(total)));
    }
    storePart(logp + end, tail, f32x4.sub(relative, f32x4.splat(total)));
    // H = ln Σ eʳ − Σ r·eʳ / Σ eʳ, r being the logits relative to the largest.
    if (entropies !== 0) {
      store<f32>(entropies, total - sumOf(weighted) / sum);
      entropies += 4;
    }
    store<f32>(picked, load<f32>(logp + ((<usize>load<i32>(targets)) << 2)));
    logits += rowBytes;
    logp += rowBytes;
    targets += 4;
    maskIndex += 4;
    picked += 4;
  }
}

function allowed(z: v128, mask: v128): v128 {
  return v128.bitselect(mask, z, f32x4.lt(mask, zero()));
}

/** dzⱼ = (([j = target] − pⱼ) · dLogprob − pⱼ · (ln pⱼ + H) · dEntropy) / T. @param entropies 0 where there is no gradient of them. */
export function logprobsGradient(
  dLogprobs: usize,
  dEntropies: usize,
  logp: usize,
  targets: usize,
  entropies: usize,
  dLogits: usize,
  rows: i32,
  vocabulary: i32,
  temperature: f32,
): void {
  const divisor = f32x4.splat(temperature);
  for (let row = 0; row < rows; row++) {
    const d: f32 = load<f32>(dLogprobs);
    const dl = f32x4.splat(d);
    const h: f32 = entropies === 0 ? 0 : load<f32>(entropies);
    const e: f32 = entropies === 0 ? 0 : load<f32>(dEntropies);
    const dh = f32x4.splat(e);
    const entropy = f32x4.splat(h);
    const target = dLogits + ((<usize>load<i32>(targets)) << 2);
    const l: f32 = load<f32>(logp + (target - dLogits));
    let at: usize = 0;
    for (let left = vocabulary; left > 0; left -= 4) {
      const lp = left >= 4 ? v128.load(logp + at) : loadPart(logp + at, left, 0);
      const p = exp4(lp);
      let sum = f32x4.mul(p, dl);
      if (entropies !== 0) sum = f32x4.add(sum, f32x4.mul(f32x4.mul(p, f32x4.add(lp, entropy)), dh));
      const dz = f32x4.div(f32x4.neg(sum), divisor);
      if (left >= 4) v128.store(dLogits + at, dz);
      else storePart(dLogits + at, left, dz);
      at += 16;
    }
    const p = f32x4.extract_lane(exp4(f32x4.splat(l)), 0);
    store<f32>(target, ((<f32>1 - p) * d - p * (l + h) * e) / temperature);
    logp += (<usize>vocabulary) << 2;
    dLogits += (<usize>vocabulary) << 2;
    targets += 4;
    dLogprobs += 4;
    if (entropies !== 0) {
      entropies += 4;
      dEntropies += 4;
    }
  }
}
