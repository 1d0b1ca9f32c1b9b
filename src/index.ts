/** @module Everything that isogym offers to code. `isogym/env` and `isogym/verifiers` are enough for a module of one's own, and load less. */
export * from './check/index.ts';
export * from './env/gym/index.ts';
export * from './env/index.ts';
export * from './policy/index.ts';
export type { Trajectory } from './records/trajectory.ts';
export * from './train/index.ts';
export * from './verifiers/index.ts';
