/** @module Statistics in double precision: means, deviations and intervals. Nothing here knows what the numbers are. */
import { inputError } from '../records/errors.ts';
import { generator } from '../records/random.ts';

/** An estimate and the ends of its interval. */
export interface Interval {
  readonly mean: number;
  readonly low: number;
  readonly high: number;
}

/** The arithmetic mean; a second pass takes back what the rounding of the first sum left. @throws EMPTY_SAMPLE */
export function mean(values: ArrayLike<number>): number {
  const n = values.length;
  if (n === 0) throw inputError('EMPTY_SAMPLE', 'expected at least one value, found none');
  let sum = 0;
  for (let i = 0; i < n; i++) sum += values[i] as number;
  const rough = sum / n;
  let residue = 0;
  for (let i = 0; i < n; i++) residue += (values[i] as number) - rough;
  return rough + residue / n;
}

/** √(Σ (xᵢ − x̄)² / n), the population deviation, by two passes (Chan, Golub & LeVeque 1983, eq. 1.7 with its correction). @throws EMPTY_SAMPLE */
export function populationDeviation(values: ArrayLike<number>): number {
  const center = mean(values);
  let squares = 0;
  let residue = 0;
  for (let i = 0; i < values.length; i++) {
    const deviation = (values[i] as number) - center;
    squares += deviation * deviation;
    residue += deviation;
  }
  return Math.sqrt(Math.max(0, squares - (residue * residue) / values.length) / values.length);
}

/** Φ⁻¹(0.975): two-sided 95 %. */
const Z_95 = 1.959963984540054;

/**
 * Wilson's score interval of a proportion (Wilson 1927; Brown, Cai & DasGupta 2001, eq. 4), without continuity correction:
 * (p̂ + z²/2n ± z √(p̂(1 − p̂)/n + z²/4n²)) / (1 + z²/n).
 *
 * @param z normal quantile; default that of 95 %.
 * @returns `mean` is the plain proportion; `low` and `high` lie in [0, 1].
 * @throws EMPTY_SAMPLE where n is 0. @throws BAD_COUNT where `successes` is no whole number in [0, n].
 */
export function wilson(successes: number, n: number, z: number = Z_95): Interval {
  if (n === 0) throw inputError('EMPTY_SAMPLE', 'expected at least one trial, found none');
  if (!(Number.isInteger(successes) && Number.isInteger(n) && successes >= 0 && successes <= n)) {
    throw inputError('BAD_COUNT', `expected whole numbers with 0 ≤ successes ≤ trials, found ${successes} of ${n}`);
  }
  const p = successes / n;
  const zz = z * z;
  const scale = 1 + zz / n;
  const center = (p + zz / (2 * n)) / scale;
  const half = (z / scale) * Math.sqrt((p * (1 - p)) / n + zz / (4 * n * n));
  return {
    mean: p,
    // By the formula exactly 0 and 1 there, but for its rounding.
    low: successes === 0 ? 0 : Math.max(0, center - half),
    high: successes === n ? 1 : Math.min(1, center + half),
  };
}

export interface BootstrapOptions {
  /** Default 2000. */
  readonly resamples?: number;
  /** Coverage in (0, 1). Default 0.95. */
  readonly level?: number;
}

/**
 * Percentile bootstrap interval of the mean (Efron 1979; Efron & Tibshirani 1993, §13.3).
 * @param seed fixes the resamples: the same values and seed give the same interval.
 * @throws EMPTY_SAMPLE
 */
export function bootstrapMean(values: ArrayLike<number>, seed: string, options: BootstrapOptions = {}): Interval {
  const { resamples = 2000, level = 0.95 } = options;
  const n = values.length;
  const center = mean(values);
  const random = generator(seed);
  const means = new Float64Array(resamples);
  for (let r = 0; r < resamples; r++) {
    let sum = 0;
    for (let i = 0; i < n; i++) sum += values[Math.floor(random() * n)] as number;
    means[r] = sum / n;
  }
  means.sort();
  return { mean: center, low: quantile(means, (1 - level) / 2), high: quantile(means, (1 + level) / 2) };
}

/** Linear interpolation between order statistics (type 7 of Hyndman & Fan 1996) of sorted values. */
function quantile(sorted: Float64Array, q: number): number {
  const at = q * (sorted.length - 1);
  const below = sorted[Math.floor(at)] ?? Number.NaN;
  const above = sorted[Math.ceil(at)] ?? Number.NaN;
  return below + (at - Math.floor(at)) * (above - below);
}

/** The quantile `q` in [0, 1] of values in any order, by linear interpolation; NaN of none. */
export function percentile(values: readonly number[], q: number): number {
  return quantile(Float64Array.from(values).sort(), q);
}

/** The mean of the two in the middle where their number is even; NaN of none. */
export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}
