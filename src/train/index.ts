/** @module isogym's public API for training from code: what `isogym train` and `isogym eval` call. */
export { type ConfigSource, type LoadedConfig, loadConfig } from '../io/config-file.ts';
export { type Config, configSchema } from './config.ts';
export type { EvaluationMode, PolicyName, PolicyRow } from './evaluate.ts';
export { evaluateRun, type RunEvaluation } from './evaluate-run.ts';
export { type Progress, type Reporter, SILENT } from './reporter.ts';
export { type TrainOptions, type TrainOutcome, train } from './run.ts';
export type { Interval } from './statistics.ts';
export type { Example, Interruption, Summary } from './summary.ts';
