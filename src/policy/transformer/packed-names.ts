/** @module Packed weights by names of their own, as variables of a session hold them. */
import type * as tf from '@tensorflow/tfjs';
import type { NamedTensors } from '../model.ts';
import type { PackedLayer, PackedWeights } from './pack.ts';

const PARTS = ['fused', 'output', 'gate', 'up', 'down'] as const satisfies readonly (keyof PackedLayer)[];

export function packedNames(layers: number): string[] {
  const all = Array.from({ length: layers }, (_, i) => PARTS.map((part) => `${part}/${i}`)).flat();
  return ['embedding', 'head', ...all];
}

export function byName({ embedding, head, layers }: PackedWeights): NamedTensors {
  const parts = layers.flatMap((layer, i) => PARTS.map((part) => [`${part}/${i}`, layer[part]] as const));
  return { embedding, head, ...Object.fromEntries(parts) };
}

/** @param read gives the variable of a name */
export function packedOf(layers: number, read: (name: string) => tf.Tensor): PackedWeights {
  const matrix = (name: string) => read(name) as tf.Tensor2D;
  return {
    embedding: matrix('embedding'),
    head: matrix('head'),
    layers: Array.from({ length: layers }, (_, i) => ({
      fused: matrix(`fused/${i}`),
      output: matrix(`output/${i}`),
      gate: matrix(`gate/${i}`),
      up: matrix(`up/${i}`),
      down: matrix(`down/${i}`),
    })),
  };
}
