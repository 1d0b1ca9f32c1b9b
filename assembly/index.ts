/** @module What the module exports. It has no data and no heap of its own: every function works on pointers into the memory that it is given. */
export { cachedAttention, selfAttention, selfAttentionGradient } from './attention';
export { gemm } from './gemm';
export { logprobs, logprobsGradient, rmsNorm, rmsNormGradient, rotate } from './rows';
