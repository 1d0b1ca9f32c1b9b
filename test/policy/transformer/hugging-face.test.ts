import { describe, expect, it } from 'vitest';
import type { HostTensor } from '../../../src/policy/model.ts';
import { readSafetensors, writeSafetensors } from '../../../src/policy/safetensors.ts';
import {
  fromHuggingFaceConfig,
  fromHuggingFaceWeights,
  toHuggingFaceConfig,
  toHuggingFaceWeights,
} from '../../../src/policy/transformer/hugging-face.ts';
import { transformer } from '../../../src/policy/transformer/model.ts';
import { generator } from '../../../src/records/random.ts';
import { SMALL, wildWeights } from './fixtures.ts';

const UNTIED = { ...SMALL, tied: false };

describe("Hugging Face's form", () => {
  it('of the weights has their names and [out, in] for every projection, and comes back to the bit through a file', () => {
    const weights = wildWeights(UNTIED, 'file');
    const file = toHuggingFaceWeights(weights);
    expect(
      Object.fromEntries(Object.entries(file).map(([name, w]) => [name, w.shape.join('×')])),
    ).toMatchInlineSnapshot(`
      {
        "lm_head.weight": "11×8",
        "model.embed_tokens.weight": "11×8",
        "model.layers.0.input_layernorm.weight": "8",
        "model.layers.0.mlp.down_proj.weight": "8×7",
        "model.layers.0.mlp.gate_proj.weight": "7×8",
        "model.layers.0.mlp.up_proj.weight": "7×8",
        "model.layers.0.post_attention_layernorm.weight": "8",
        "model.layers.0.self_attn.k_proj.weight": "12×8",
        "model.layers.0.self_attn.o_proj.weight": "8×24",
        "model.layers.0.self_attn.q_proj.weight": "24×8",
        "model.layers.0.self_attn.v_proj.weight": "12×8",
        "model.layers.1.input_layernorm.weight": "8",
        "model.layers.1.mlp.down_proj.weight": "8×7",
        "model.layers.1.mlp.gate_proj.weight": "7×8",
        "model.layers.1.mlp.up_proj.weight": "7×8",
        "model.layers.1.post_attention_layernorm.weight": "8",
        "model.layers.1.self_attn.k_proj.weight": "12×8",
        "model.layers.1.self_attn.o_proj.weight": "8×24",
        "model.layers.1.self_attn.q_proj.weight": "24×8",
        "model.layers.1.self_attn.v_proj.weight": "12×8",
        "model.norm.weight": "8",
      }
    `);
    const query = 'model.layers.1.self_attn.q_proj.weight';
    expect(file[query]!.data[5 * 8 + 3]).toBe(weights[query]!.data[3 * 24 + 5]);
    const embedding = 'model.embed_tokens.weight';
    expect(file[embedding]!.data).toEqual(weights[embedding]!.data);
    const read = readSafetensors(writeSafetensors(file, { format: 'pt' })).tensors;
    expect(fromHuggingFaceWeights(UNTIED, read)).toEqual(weights);
  });

  it('of the config comes back the same', () => {
    for (const config of [SMALL, UNTIED]) {
      expect(fromHuggingFaceConfig(toHuggingFaceConfig(config, { maxPositions: 64, endToken: 256 }))).toEqual(config);
    }
    expect(toHuggingFaceConfig(SMALL, { maxPositions: 64, endToken: 256 })).toMatchInlineSnapshot(`
      {
        "architectures": [
          "LlamaForCausalLM",
        ],
        "attention_bias": false,
        "bos_token_id": null,
        "eos_token_id": 256,
        "head_dim": 6,
        "hidden_act": "silu",
        "hidden_size": 8,
        "intermediate_size": 7,
        "max_position_embeddings": 64,
        "mlp_bias": false,
        "model_type": "llama",
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "rms_norm_eps": 0.00001,
        "rope_scaling": null,
        "rope_theta": 100,
        "tie_word_embeddings": true,
        "torch_dtype": "float32",
        "vocab_size": 11,
      }
    `);
  });

  it("of a pretrained model's config is understood, with LlamaConfig's defaults (SmolLM2-135M's figures)", () => {
    const config = fromHuggingFaceConfig({
      architectures: ['LlamaForCausalLM'],
      model_type: 'llama',
      attention_dropout: 0.0,
      hidden_act: 'silu',
      hidden_size: 576,
      intermediate_size: 1536,
      num_attention_heads: 9,
      num_hidden_layers: 30,
      num_key_value_heads: 3,
      rms_norm_eps: 1e-5,
      rope_theta: 100000,
      tie_word_embeddings: true,
      vocab_size: 49152,
    });
    expect(config).toEqual({
      vocabulary: 49152,
      layers: 30,
      width: 576,
      heads: 9,
      kvHeads: 3,
      headWidth: 64,
      hidden: 1536,
      ropeBase: 100000,
      epsilon: 1e-5,
      tied: true,
    });
  });

  it.each([
    [{ model_type: 'gpt2' }, /model_type: expected llama, found "gpt2"/],
    [{ rope_scaling: { rope_type: 'llama3' } }, /rope_scaling/],
    [{ rope_parameters: { rope_type: 'yarn' } }, /rope_type: expected default, found "yarn"/],
    [{ attention_bias: true }, /attention_bias/],
    [{ hidden_act: 'gelu' }, /hidden_act/],
    [{ hidden_size: 'wide' }, /width: expected a whole number/],
    [{ num_key_value_heads: 3 }, /kvHeads: expected a divisor of heads = 4, found 3/],
  ])('of a config that would compute something else is refused: %j', (change, message) => {
    const json = toHuggingFaceConfig(SMALL, { maxPositions: 64, endToken: 256 });
    expect(() => fromHuggingFaceConfig({ ...json, ...change })).toThrow(message);
  });

  it('names every weight that is missing, unknown or misshapen', () => {
    const { 'model.norm.weight': _, ...file } = toHuggingFaceWeights(wildWeights(SMALL, 'faults'));
    const wrong: Record<string, HostTensor> = { ...file, extra: { shape: [1], data: new Float32Array(1) } };
    const gate = 'model.layers.0.mlp.gate_proj.weight';
    wrong[gate] = { shape: [8, 7], data: new Float32Array(56) };
    expect(() => fromHuggingFaceWeights(SMALL, wrong)).toThrow(
      /gate_proj.weight: expected shape \[7,8\], found \[8,7\]; model.norm.weight is missing; extra is no weight/,
    );
  });

  it('of a tied model may repeat the embedding as head', () => {
    const file = toHuggingFaceWeights(wildWeights(SMALL, 'tied'));
    const repeated = { ...file, 'lm_head.weight': file['model.embed_tokens.weight']! };
    expect(Object.keys(fromHuggingFaceWeights(SMALL, repeated))).not.toContain('lm_head.weight');
  });
});

describe('fresh weights', () => {
  const config = { ...SMALL, width: 64, vocabulary: 300, hidden: 172 };
  const weights = transformer(config).init(generator('init'));
  const deviation = (name: string): number => {
    const { data } = weights[name]!;
    const mean = data.reduce((a, b) => a + b, 0) / data.length;
    expect(Math.abs(mean)).toBeLessThan(0.002);
    return Math.sqrt(data.reduce((a, b) => a + (b - mean) ** 2, 0) / data.length);
  };

  it('are normal with deviation 0.02, smaller by √(2·layers) where they write to the residual stream; norms are 1', () => {
    expect(deviation('model.embed_tokens.weight')).toBeCloseTo(0.02, 3);
    expect(deviation('model.layers.0.mlp.gate_proj.weight')).toBeCloseTo(0.02, 3);
    expect(deviation('model.layers.1.mlp.down_proj.weight')).toBeCloseTo(0.01, 3);
    expect(deviation('model.layers.1.self_attn.o_proj.weight')).toBeCloseTo(0.01, 3);
    expect(new Set(weights['model.norm.weight']!.data)).toEqual(new Set([1]));
  });

  it('are a function of the generator', () => {
    expect(transformer(config).init(generator('init'))).toEqual(weights);
    expect(transformer(config).init(generator('other'))).not.toEqual(weights);
  });

  it('are refused for sizes that do not fit together, all faults at once', () => {
    expect(() => transformer({ ...SMALL, layers: 0, epsilon: 0 })).toThrow(/layers: .* found 0; epsilon: .* found 0/);
    expect(() => transformer({ ...SMALL, headWidth: 5 })).toThrow(/headWidth: expected an even number, found 5/);
  });
});
