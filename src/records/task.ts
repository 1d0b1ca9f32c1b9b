/** @module A task: one problem, with what the environment may know of it kept apart from what only the verifier may know. */
import type { Json } from './json.ts';

/**
 * What an episode is begun with. It is all that a rollout worker, an environment's isolate and a policy ever receive of a
 * task: the record that travels to them has no `held` field.
 */
export interface PublicTask {
  /** Stable and unique within its task set; the train / held-out split hashes it. */
  readonly id: string;
  /** What the policy reads first. */
  readonly prompt: string;
  /** Goes to the environment's isolate, e.g. the fact table. */
  readonly public: Json;
  /** Never here: this line is what makes a whole `Task` a type error wherever a `PublicTask` is wanted. */
  readonly held?: never;
}

export interface Task extends Omit<PublicTask, 'held'> {
  /** Goes to the verifier and to nothing else, e.g. the expected answer. */
  readonly held: Json;
}

/** The part of a task that may leave the trainer for a rollout: a copy without `held`. */
export function publicPart(task: Task): PublicTask {
  return { id: task.id, prompt: task.prompt, public: task.public };
}
