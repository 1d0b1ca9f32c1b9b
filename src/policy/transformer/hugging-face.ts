/** @module The edge towards Hugging Face: its config.json and its weight files, where projections are [out, in]. */
import { IsogymError, inputError } from '../../records/errors.ts';
import type { JsonObject } from '../../records/json.ts';
import type { HostTensor, Weights } from '../model.ts';
import { checkConfig, type TransformerConfig } from './config.ts';
import { HEAD, isProjection, weightShapes } from './weights.ts';

/** The config.json of a `LlamaForCausalLM` that computes what this model computes. */
export function toHuggingFaceConfig(
  config: TransformerConfig,
  more: { readonly maxPositions: number; readonly endToken: number },
): JsonObject {
  return {
    architectures: ['LlamaForCausalLM'],
    model_type: 'llama',
    vocab_size: config.vocabulary,
    num_hidden_layers: config.layers,
    hidden_size: config.width,
    num_attention_heads: config.heads,
    num_key_value_heads: config.kvHeads,
    head_dim: config.headWidth,
    intermediate_size: config.hidden,
    rope_theta: config.ropeBase,
    rope_scaling: null,
    rms_norm_eps: config.epsilon,
    tie_word_embeddings: config.tied,
    hidden_act: 'silu',
    attention_bias: false,
    mlp_bias: false,
    max_position_embeddings: more.maxPositions,
    bos_token_id: null,
    eos_token_id: more.endToken,
    torch_dtype: 'float32',
  };
}

/**
 * The other way round; keys that do not change what is computed are ignored, and absent ones mean LlamaConfig's defaults.
 * @throws UNSUPPORTED_MODEL for another architecture or a variant (scaled rotary positions, biases, another activation); INVALID_TRANSFORMER for sizes that do not fit.
 */
export function fromHuggingFaceConfig(json: JsonObject): TransformerConfig {
  const require = (key: string, supported: unknown, found: unknown) => {
    if (found !== supported) {
      throw inputError(
        'UNSUPPORTED_MODEL',
        `config.json: ${key}: expected ${supported}, found ${JSON.stringify(found)}`,
      );
    }
  };
  // From version 5 of transformers on, the rotary parameters have an object of their own.
  const rope = (json.rope_parameters ?? {}) as JsonObject;
  require('model_type', 'llama', json.model_type);
  require('hidden_act', 'silu', json.hidden_act ?? 'silu');
  require('attention_bias', false, json.attention_bias ?? false);
  require('mlp_bias', false, json.mlp_bias ?? false);
  require('rope_scaling', null, json.rope_scaling ?? null);
  require('rope_parameters.rope_type', 'default', rope.rope_type ?? 'default');
  const width = json.hidden_size as number;
  const heads = json.num_attention_heads as number;
  const config: TransformerConfig = {
    vocabulary: json.vocab_size as number,
    layers: json.num_hidden_layers as number,
    width,
    heads,
    kvHeads: (json.num_key_value_heads ?? heads) as number,
    headWidth: (json.head_dim ?? width / heads) as number,
    hidden: json.intermediate_size as number,
    ropeBase: (rope.rope_theta ?? json.rope_theta ?? 10000) as number,
    epsilon: (json.rms_norm_eps ?? 1e-6) as number,
    tied: (json.tie_word_embeddings ?? false) as boolean,
  };
  checkConfig(config);
  return config;
}

/** Memory → file: projections as [out, in], all else as it is. */
export function toHuggingFaceWeights(weights: Weights): Weights {
  return mapValues(weights, (name, w) => (isProjection(name) ? transposed(w) : w));
}

/**
 * File → memory, every weight of the config and no other; a tied model's file may repeat the embedding as `lm_head.weight`.
 * @throws BAD_WEIGHTS with every missing, unknown and misshapen one at once.
 */
export function fromHuggingFaceWeights(config: TransformerConfig, file: Weights): Weights {
  const shapes = weightShapes(config);
  const faults: string[] = [];
  const weights: Record<string, HostTensor> = {};
  for (const [name, shape] of shapes) {
    const found = file[name];
    if (found === undefined) {
      faults.push(`${name} is missing`);
      continue;
    }
    const expected = isProjection(name) ? [...shape].reverse() : shape;
    if (found.shape.join() !== expected.join()) {
      faults.push(`${name}: expected shape [${expected}], found [${found.shape}]`);
      continue;
    }
    weights[name] = isProjection(name) ? transposed(found) : found;
  }
  for (const name of Object.keys(file)) {
    if (!shapes.has(name) && !(config.tied && name === HEAD)) faults.push(`${name} is no weight of this model`);
  }
  if (faults.length > 0)
    throw new IsogymError('BAD_WEIGHTS', `the weights do not fit the config: ${faults.join('; ')}`);
  return weights;
}

function transposed({ shape, data }: HostTensor): HostTensor {
  const [rows = 0, columns = 0] = shape;
  const out = new Float32Array(data.length);
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) out[j * rows + i] = data[i * columns + j] as number;
  }
  return { shape: [columns, rows], data: out };
}

function mapValues(weights: Weights, map: (name: string, w: HostTensor) => HostTensor): Weights {
  return Object.fromEntries(Object.entries(weights).map(([name, w]) => [name, map(name, w)]));
}
