/** @module The transformer again, slow and obvious: one sequence, plain loops, double precision, no cache, no fusion. */
import type { Weights } from '../../../src/policy/model.ts';
import type { TransformerConfig } from '../../../src/policy/transformer/config.ts';

type Vector = number[];
export type Matrices = Readonly<Record<string, { readonly shape: readonly number[]; readonly data: number[] }>>;

/** Weights in double precision, so that finite differences can be taken. */
export function doubles(weights: Weights): Matrices {
  return Object.fromEntries(Object.entries(weights).map(([name, w]) => [name, { shape: w.shape, data: [...w.data] }]));
}

function get(weights: Matrices, name: string) {
  const w = weights[name];
  if (w === undefined) throw new Error(`oracle: no weight ${name}`);
  return w;
}

/** x · W, W [in, out]. */
function project(weights: Matrices, name: string, x: Vector): Vector {
  const { shape, data } = get(weights, name);
  const [inner, outer] = shape as [number, number];
  return Array.from({ length: outer }, (_, j) => {
    let sum = 0;
    for (let i = 0; i < inner; i++) sum += x[i]! * data[i * outer + j]!;
    return sum;
  });
}

function rmsNorm(weights: Matrices, name: string, x: Vector, epsilon: number): Vector {
  const meanSquare = x.reduce((sum, v) => sum + v * v, 0) / x.length;
  return x.map((v, i) => (v / Math.sqrt(meanSquare + epsilon)) * get(weights, name).data[i]!);
}

/** As Hugging Face's apply_rotary_pos_emb: x·cos + rotate_half(x)·sin. */
function rope(head: Vector, position: number, base: number): Vector {
  const half = head.length / 2;
  return head.map((v, i) => {
    const angle = position / base ** ((2 * (i % half)) / head.length);
    const rotated = i < half ? -head[i + half]! : head[i - half]!;
    return v * Math.cos(angle) + rotated * Math.sin(angle);
  });
}

const add = (a: Vector, b: Vector): Vector => a.map((v, i) => v + b[i]!);

/** Logits [T][V] of one sequence whose first token stands at `start`. */
export function oracleLogits(
  config: TransformerConfig,
  weights: Matrices,
  ids: readonly number[],
  start = 0,
): Vector[] {
  const { width, heads, kvHeads, headWidth, epsilon } = config;
  const embedding = get(weights, 'model.embed_tokens.weight').data;
  let xs = ids.map((id) => embedding.slice(id * width, (id + 1) * width));
  for (let layer = 0; layer < config.layers; layer++) {
    const at = (part: string) => `model.layers.${layer}.${part}.weight`;
    const normed = xs.map((x) => rmsNorm(weights, at('input_layernorm'), x, epsilon));
    const headsOf = (part: string, x: Vector, count: number): Vector[] => {
      const flat = project(weights, at(`self_attn.${part}_proj`), x);
      return Array.from({ length: count }, (_, h) => flat.slice(h * headWidth, (h + 1) * headWidth));
    };
    const turned = (part: string, count: number) =>
      normed.map((x, t) => headsOf(part, x, count).map((head) => rope(head, start + t, config.ropeBase)));
    const q = turned('q', heads);
    const k = turned('k', kvHeads);
    const v = normed.map((x) => headsOf('v', x, kvHeads));
    xs = xs.map((x, t) => {
      const context: Vector = [];
      for (let h = 0; h < heads; h++) {
        const shared = Math.floor(h / (heads / kvHeads));
        const scores = Array.from({ length: t + 1 }, (_, s) => {
          const dot = q[t]![h]!.reduce((sum, value, i) => sum + value * k[s]![shared]![i]!, 0);
          return dot / Math.sqrt(headWidth);
        });
        const largest = Math.max(...scores);
        const exps = scores.map((score) => Math.exp(score - largest));
        const total = exps.reduce((a, b) => a + b, 0);
        for (let i = 0; i < headWidth; i++) {
          context.push(exps.reduce((sum, e, s) => sum + (e / total) * v[s]![shared]![i]!, 0));
        }
      }
      return add(x, project(weights, at('self_attn.o_proj'), context));
    });
    xs = xs.map((x) => {
      const inner = rmsNorm(weights, at('post_attention_layernorm'), x, epsilon);
      const gate = project(weights, at('mlp.gate_proj'), inner);
      const up = project(weights, at('mlp.up_proj'), inner);
      return add(
        x,
        project(
          weights,
          at('mlp.down_proj'),
          gate.map((g, i) => (g / (1 + Math.exp(-g))) * up[i]!),
        ),
      );
    });
  }
  return xs.map((x) => {
    const normed = rmsNorm(weights, 'model.norm.weight', x, epsilon);
    if (!config.tied) return project(weights, 'lm_head.weight', normed);
    return Array.from({ length: config.vocabulary }, (_, id) =>
      normed.reduce((sum, value, i) => sum + value * embedding[id * width + i]!, 0),
    );
  });
}
