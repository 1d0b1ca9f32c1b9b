/** @module The size and the constants of a decoder of the Llama family: all that tells a toy from a pretrained model. */
import { inputError } from '../../records/errors.ts';

export interface TransformerConfig {
  /** Number of token ids V. */
  readonly vocabulary: number;
  readonly layers: number;
  /** Width d of the residual stream. */
  readonly width: number;
  /** Query heads H. */
  readonly heads: number;
  /** Key/value heads K; divides `heads`, and each serves H / K neighbouring query heads (grouped-query attention, arXiv:2305.13245). */
  readonly kvHeads: number;
  /** Width of one head; even, because rotary positions turn pairs. */
  readonly headWidth: number;
  /** Inner width of the SwiGLU block. */
  readonly hidden: number;
  /** Base of the rotary frequencies, 10000 in arXiv:2104.09864. */
  readonly ropeBase: number;
  /** Added to the mean square under the root of RMSNorm. */
  readonly epsilon: number;
  /** Whether the head is the embedding, transposed. */
  readonly tied: boolean;
}

/** Columns of the fused query, key and value projection: the query heads, then the key heads, then the value heads. */
export function fusedWidth(config: TransformerConfig): number {
  return (config.heads + 2 * config.kvHeads) * config.headWidth;
}

/** @throws INVALID_TRANSFORMER with every fault at once. */
export function checkConfig(config: TransformerConfig): void {
  const faults: string[] = [];
  for (const key of ['vocabulary', 'layers', 'width', 'heads', 'kvHeads', 'headWidth', 'hidden'] as const) {
    if (!(Number.isSafeInteger(config[key]) && config[key] > 0)) {
      faults.push(`${key}: expected a whole number > 0, found ${config[key]}`);
    }
  }
  for (const key of ['ropeBase', 'epsilon'] as const) {
    if (!(config[key] > 0 && config[key] < Number.POSITIVE_INFINITY)) {
      faults.push(`${key}: expected a finite number > 0, found ${config[key]}`);
    }
  }
  if (faults.length === 0 && config.heads % config.kvHeads !== 0) {
    faults.push(`kvHeads: expected a divisor of heads = ${config.heads}, found ${config.kvHeads}`);
  }
  if (faults.length === 0 && config.headWidth % 2 !== 0) {
    faults.push(`headWidth: expected an even number, found ${config.headWidth}`);
  }
  if (faults.length > 0) throw inputError('INVALID_TRANSFORMER', faults.join('; '));
}
