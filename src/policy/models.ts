/** @module The models that there are, and what tells one of them to another process. */
import type { Model } from './model.ts';
import { tabularModel } from './tabular-model.ts';
import type { TransformerConfig } from './transformer/config.ts';
import { transformer } from './transformer/model.ts';

/** All that a model follows from, as plain data. */
export type ModelSpec =
  | { readonly kind: 'transformer'; readonly config: TransformerConfig }
  | { readonly kind: 'tabular'; readonly states: number; readonly actions: number };

/** @throws INVALID_TRANSFORMER for sizes that do not fit together. */
export function modelOf(spec: ModelSpec): Model {
  return spec.kind === 'transformer' ? transformer(spec.config) : tabularModel(spec.states, spec.actions);
}
