/** @module isogym's public API for those who write environments. Importing it starts nothing: no pool, no tensors. */

export type { Policy, PolicyContext, PolicyReply } from '../policy/policy.ts';
export { scriptedPolicy, scriptFromList } from '../policy/scripted.ts';
export { Tokenizer } from '../policy/tokenizer.ts';
export type { Action, ToolCall } from '../records/action.ts';
export { IsogymError, inputError } from '../records/errors.ts';
export type { Json, JsonObject } from '../records/json.ts';
export { deriveSeed, generator, type Random, shuffled } from '../records/random.ts';
export { type PublicTask, publicPart, type Task } from '../records/task.ts';
export type { CallRecord, Episode, Segment, Step } from '../records/trajectory.ts';
export {
  type CreateWorld,
  defineEnvironment,
  type Environment,
  type EnvironmentDefinition,
  type Isolation,
  type Script,
  type ScriptedAction,
  type ScriptView,
  type TabularView,
  type World,
} from './environment.ts';
export { type EpisodeSetup, runEpisode } from './episode.ts';
export { type Format, formatOf } from './format.ts';
export { importEnvironment } from './load.ts';
export { finishCall, ToolRegistry } from './registry.ts';
export { RolloutRunner } from './rollouts/rollout-runner.ts';
export type { Fork, PolicySpec, RolloutEngine, RolloutRequest, RolloutSetup } from './rollouts/rollouts.ts';
export { bundle } from './sandbox/bundle.ts';
export type { CodeFailure, CodeLimits, CodeOutcome, RunCode } from './sandbox/code.ts';
export { type ForkableWorld, WorldHost, type WorldOutcome, type WorldSession } from './sandbox/world-host.ts';
export { defineTool, type Permission, type Tool, type ToolEffect, type ToolSchema, toolSchema } from './tool.ts';
