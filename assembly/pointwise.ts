/** @module Element by element: exp, SwiGLU with its gradient, and the update of AdamW. Pointers in bytes, counts in elements. */
import { exp4, loadPart, sigmoid4, storePart } from './lanes';

export function exp(x: usize, out: usize, count: i32): void {
  for (; count >= 4; count -= 4) {
    v128.store(out, exp4(v128.load(x)));
    x += 16;
    out += 16;
  }
  if (count > 0) storePart(out, count, exp4(loadPart(x, count, 0)));
}

/** out = g · σ(g) · up. */
export function swiglu(gate: usize, up: usize, out: usize, count: i32): void {
  for (; count > 0; count -= 4) {
    const whole = count >= 4;
    const g = whole ? v128.load(gate) : loadPart(gate, count, 0);
    const u = whole ? v128.load(up) : loadPart(up, count, 0);
    const y = f32x4.mul(f32x4.mul(g, sigmoid4(g)), u);
    if (whole) v128.store(out, y);
    else storePart(out, count, y);
    gate += 16;
    up += 16;
    out += 16;
  }
}

/** With s = g·σ(g): dg = dy · up · (σ + s · (1 − σ)), dup = dy · s. */
export function swigluGradient(dy: usize, gate: usize, up: usize, dGate: usize, dUp: usize, count: i32): void {
  for (; count > 0; count -= 4) {
    const whole = count >= 4;
    const d = whole ? v128.load(dy) : loadPart(dy, count, 0);
    const g = whole ? v128.load(gate) : loadPart(gate, count, 0);
    const u = whole ? v128.load(up) : loadPart(up, count, 0);
    const sigmoid = sigmoid4(g);
    const silu = f32x4.mul(g, sigmoid);
    const slope = f32x4.add(sigmoid, f32x4.mul(silu, f32x4.sub(f32x4.splat(1), sigmoid)));
    const dg = f32x4.mul(f32x4.mul(d, u), slope);
    const du = f32x4.mul(d, silu);
    if (whole) {
      v128.store(dGate, dg);
      v128.store(dUp, du);
    } else {
      storePart(dGate, count, dg);
      storePart(dUp, count, du);
    }
    dy += 16;
    gate += 16;
    up += 16;
    dGate += 16;
    dUp += 16;
  }
}

/**
 * θ₁ = kept·θ − stepSize · m₁ / (√v₁ / rootCorrection2 + ε), m₁ = m + gain1·(g − m), v₁ = v + gain2·(g² − v): src/train/adamw.ts
 * in its order of operations, to the bit.
 */
export function adamw(
  weight: usize,
  g: usize,
  m: usize,
  v: usize,
  outWeight: usize,
  outM: usize,
  outV: usize,
  count: i32,
  kept: f32,
  gain1: f32,
  gain2: f32,
  rootCorrection2: f32,
  stepSize: f32,
  epsilon: f32,
): void {
  for (; count > 0; count -= 4) {
    const whole = count >= 4;
    const w0 = whole ? v128.load(weight) : loadPart(weight, count, 0);
    const g0 = whole ? v128.load(g) : loadPart(g, count, 0);
    const m0 = whole ? v128.load(m) : loadPart(m, count, 0);
    const v0 = whole ? v128.load(v) : loadPart(v, count, 0);
    const m1 = f32x4.add(m0, f32x4.mul(f32x4.sub(g0, m0), f32x4.splat(gain1)));
    const v1 = f32x4.add(v0, f32x4.mul(f32x4.sub(f32x4.mul(g0, g0), v0), f32x4.splat(gain2)));
    const root = f32x4.div(f32x4.sqrt(v1), f32x4.splat(rootCorrection2));
    const change = f32x4.mul(f32x4.splat(stepSize), f32x4.div(m1, f32x4.add(root, f32x4.splat(epsilon))));
    const w1 = f32x4.sub(f32x4.mul(w0, f32x4.splat(kept)), change);
    if (whole) {
      v128.store(outWeight, w1);
      v128.store(outM, m1);
      v128.store(outV, v1);
    } else {
      storePart(outWeight, count, w1);
      storePart(outM, count, m1);
      storePart(outV, count, v1);
    }
    weight += 16;
    g += 16;
    m += 16;
    v += 16;
    outWeight += 16;
    outM += 16;
    outV += 16;
  }
}
