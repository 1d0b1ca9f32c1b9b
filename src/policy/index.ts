/** @module isogym's public API for those who act and those who train what acts. Importing it loads the tensor library. */
export { type Backend, type BackendName, type ProbedBackend, probeBackends, selectBackend } from './backends/select.ts';
export { TransformerPolicy, type TransformerPolicyOptions } from './generate.ts';
export { actionGrammar, type Grammar } from './grammar/index.ts';
export type { HostTensor, Model, NamedTensors, TokenRows, Weights } from './model.ts';
export type { Policy, PolicyContext, PolicyReply } from './policy.ts';
export { readSafetensors, writeSafetensors } from './safetensors.ts';
export { scriptedPolicy, scriptFromList } from './scripted.ts';
export { tabularModel } from './tabular-model.ts';
export type { TokenPolicy, TokenReply, TokenRequest } from './token-policy.ts';
export { Tokenizer } from './tokenizer.ts';
export type { TransformerConfig } from './transformer/config.ts';
export { transformer } from './transformer/model.ts';
