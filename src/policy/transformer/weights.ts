/** @module The named weights of the transformer: Hugging Face's names, with projections in memory as [in, out]. */
import type { Random } from '../../records/random.ts';
import type { Weights } from '../model.ts';
import type { TransformerConfig } from './config.ts';

export const EMBEDDING = 'model.embed_tokens.weight';
export const FINAL_NORM = 'model.norm.weight';
export const HEAD = 'lm_head.weight';

/** Names of one layer's weights, after `model.layers.{i}.`. */
export const LAYER_WEIGHTS = {
  attentionNorm: 'input_layernorm.weight',
  query: 'self_attn.q_proj.weight',
  key: 'self_attn.k_proj.weight',
  value: 'self_attn.v_proj.weight',
  output: 'self_attn.o_proj.weight',
  mlpNorm: 'post_attention_layernorm.weight',
  gate: 'mlp.gate_proj.weight',
  up: 'mlp.up_proj.weight',
  down: 'mlp.down_proj.weight',
} as const;

export function layerWeight(layer: number, part: keyof typeof LAYER_WEIGHTS): string {
  return `model.layers.${layer}.${LAYER_WEIGHTS[part]}`;
}

/** Whether a weight is a matrix that Hugging Face's files hold as [out, in]: every projection and the untied head, not the embedding. */
export function isProjection(name: string): boolean {
  return name.endsWith('_proj.weight') || name === HEAD;
}

/** Shape in memory of every weight, in the order in which `initialWeights` draws them. */
export function weightShapes(config: TransformerConfig): ReadonlyMap<string, readonly number[]> {
  const { vocabulary, width, hidden } = config;
  const queries = config.heads * config.headWidth;
  const keys = config.kvHeads * config.headWidth;
  const shapes = new Map<string, readonly number[]>([[EMBEDDING, [vocabulary, width]]]);
  for (let layer = 0; layer < config.layers; layer++) {
    shapes.set(layerWeight(layer, 'attentionNorm'), [width]);
    shapes.set(layerWeight(layer, 'query'), [width, queries]);
    shapes.set(layerWeight(layer, 'key'), [width, keys]);
    shapes.set(layerWeight(layer, 'value'), [width, keys]);
    shapes.set(layerWeight(layer, 'output'), [queries, width]);
    shapes.set(layerWeight(layer, 'mlpNorm'), [width]);
    shapes.set(layerWeight(layer, 'gate'), [width, hidden]);
    shapes.set(layerWeight(layer, 'up'), [width, hidden]);
    shapes.set(layerWeight(layer, 'down'), [hidden, width]);
  }
  shapes.set(FINAL_NORM, [width]);
  if (!config.tied) shapes.set(HEAD, [width, vocabulary]);
  return shapes;
}

export function parameterCount(config: TransformerConfig): number {
  return [...weightShapes(config).values()].reduce((sum, shape) => sum + shape.reduce((a, b) => a * b, 1), 0);
}

/** Deviation of the fresh weights, as in GPT-2. */
const DEVIATION = 0.02;

/** Fresh weights: norms 1, all others normal(0, 0.02²); the two projections that write to the residual stream are scaled by 1/√(2·layers) (GPT-2, section 2.3). */
export function initialWeights(config: TransformerConfig, random: Random): Weights {
  const normal = normals(random);
  const weights: Record<string, Weights[string]> = {};
  for (const [name, shape] of weightShapes(config)) {
    const data = new Float32Array(shape.reduce((a, b) => a * b, 1));
    if (shape.length === 1) {
      data.fill(1);
    } else {
      const residual = name.endsWith(LAYER_WEIGHTS.output) || name.endsWith(LAYER_WEIGHTS.down);
      const deviation = residual ? DEVIATION / Math.sqrt(2 * config.layers) : DEVIATION;
      for (let i = 0; i < data.length; i++) data[i] = deviation * normal();
    }
    weights[name] = { shape, data };
  }
  return weights;
}

/** Standard normals from uniforms in [0, 1) (Box and Muller 1958), two at a time. */
function normals(random: Random): () => number {
  let spare: number | undefined;
  return () => {
    if (spare !== undefined) {
      const value = spare;
      spare = undefined;
      return value;
    }
    const radius = Math.sqrt(-2 * Math.log(1 - random()));
    const angle = 2 * Math.PI * random();
    spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  };
}
