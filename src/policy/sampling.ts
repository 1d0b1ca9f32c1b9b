/** @module Drawing one token from a row of logits under a grammar: the distribution that is sampled is the one whose logprob is recorded. */
import { IsogymError } from '../records/errors.ts';

/**
 * Draws from p(i) = exp(zᵢ / T) / Σⱼ exp(zⱼ / T), where i and j run over `allowed` only and zᵢ = `logits[offset + i]`; in double precision.
 *
 * Inverse CDF in the order of `allowed`: the first id whose cumulative probability is greater than `uniform`. So an id owns
 * the half-open interval [sum before it, sum with it), `uniform` = 0 gives the first id of positive probability, and one of
 * probability 0 (a logit of −∞, or an underflow) is never drawn.
 *
 * @param offset where the row begins in `logits`.
 * @param allowed ids, ascending, at least one.
 * @param temperature T > 0; `greedyToken` is the limit T → 0.
 * @param uniform in [0, 1).
 * @returns the id, and ln p(id) [nats] under that very distribution.
 * @throws BAD_LOGIT where an allowed logit is NaN or +∞, or all are −∞. @throws NOTHING_ALLOWED where `allowed` is empty.
 * @throws BAD_TEMPERATURE where T is not a positive finite number.
 */
export function sampleToken(
  logits: Float32Array,
  offset: number,
  allowed: Int32Array,
  temperature: number,
  uniform: number,
): { id: number; logprob: number } {
  if (!(temperature > 0 && temperature < Number.POSITIVE_INFINITY)) {
    throw new IsogymError('BAD_TEMPERATURE', `expected a temperature > 0, found ${temperature}`, {
      hint: 'for the most likely token, act greedily instead',
    });
  }
  const largest = logit(logits, offset, greedyToken(logits, offset, allowed));
  if (largest === Number.NEGATIVE_INFINITY) {
    throw new IsogymError('BAD_LOGIT', `all ${allowed.length} allowed logits are -Infinity: nothing can be sampled`);
  }
  // Relative to the largest, so that the largest weight is exactly 1 and nothing overflows.
  const scaled = (id: number) => (logit(logits, offset, id) - largest) / temperature;
  let total = 0;
  for (const id of allowed) total += Math.exp(scaled(id));
  const threshold = uniform * total;
  let cumulative = 0;
  let drawn = -1;
  for (const id of allowed) {
    const weight = Math.exp(scaled(id));
    if (weight === 0) continue;
    cumulative += weight;
    drawn = id;
    if (cumulative > threshold) break;
  }
  return { id: drawn, logprob: scaled(drawn) - Math.log(total) };
}

/** The allowed id with the largest logit, the first of equals. @throws BAD_LOGIT, NOTHING_ALLOWED as `sampleToken`. */
export function greedyToken(logits: Float32Array, offset: number, allowed: Int32Array): number {
  let best = allowed[0];
  if (best === undefined) throw new IsogymError('NOTHING_ALLOWED', 'expected at least one allowed token, found none');
  let largest = Number.NEGATIVE_INFINITY;
  for (const id of allowed) {
    const value = logit(logits, offset, id);
    if (!(value < Number.POSITIVE_INFINITY)) {
      throw new IsogymError(
        'BAD_LOGIT',
        `expected a finite logit for token ${id}, found ${value} (row begins at ${offset})`,
        {
          hint: 'the weights or the activations have overflowed: lower the learning rate or clip the gradient',
        },
      );
    }
    if (value > largest) {
      largest = value;
      best = id;
    }
  }
  return best;
}

function logit(logits: Float32Array, offset: number, id: number): number {
  return logits[offset + id] ?? Number.NaN;
}
