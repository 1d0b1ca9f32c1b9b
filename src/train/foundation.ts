/** @module What a run is made of beside its config, as hashes for its manifest: the code that runs in isolates, the declarations, the tasks. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Environment } from '../env/environment.ts';
import { bundle } from '../env/sandbox/bundle.ts';
import { toolSchema } from '../env/tool.ts';
import { hashJson, hashText } from '../io/manifest.ts';
import type { Verifier } from '../verifiers/verifier.ts';
import type { TaskSet } from './task-set.ts';

/** Hashes of one module that a run works with: its code inside the isolate, and what it declares outside. */
export interface ModuleHashes {
  readonly code: string;
  readonly declaration: string;
}

/** @throws MODULE_NOT_FOUND | BUNDLE_FAILED */
export async function environmentHashes(environment: Environment): Promise<ModuleHashes> {
  return { code: hashText(await bundle(environment.world)), declaration: hashJson(declared(environment)) };
}

/** @throws MODULE_NOT_FOUND | BUNDLE_FAILED */
export async function verifierHashes(verifier: Verifier): Promise<ModuleHashes> {
  const { source, ...declaration } = verifier;
  return { code: hashText(await bundle(source)), declaration: hashJson(declaration) };
}

/**
 * Of all that a policy is told and an episode is bounded by. Scripts and the tabular view are functions: of these only the names
 * are data. Where the worlds run (`isolation`) changes no byte.
 */
function declared({ name, tools, answer, format, words, limits, reset, code, memoryMiB, ...rest }: Environment) {
  return {
    ...{ name, format, words, limits, reset, memoryMiB, code: code ?? null },
    tools: tools.map((tool) => {
      const { effect, timeoutMs, maxOutput, permission } = tool;
      // A function, so that no more is known of it than that it is there.
      const bounded = permission === undefined ? {} : { permission: true };
      return { ...toolSchema(tool), effect, timeoutMs, maxOutput, ...bounded };
    }),
    answer: z.toJSONSchema(answer, { unrepresentable: 'any' }),
    scripts: Object.keys(rest.scripts),
    tabular: rest.tabular === undefined ? null : { states: rest.tabular.states, actions: rest.tabular.actions },
  };
}

/** Of every task, what is held included, in the order of the set. */
export function tasksHash({ train, heldOut }: TaskSet): string {
  const hash = createHash('sha256');
  // Task by task: the text of a million of them is longer than a string may be.
  for (const side of [train, heldOut]) {
    hash.update(`${side.length}\n`);
    for (const { id, prompt, public: given, held } of side) {
      hash.update(`${JSON.stringify([id, prompt, given, held])}\n`);
    }
  }
  return hash.digest('hex');
}
