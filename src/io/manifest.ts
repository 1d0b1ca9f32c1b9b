/** @module What a run was: enough to tell whether two runs are comparable. It holds no clock time, see timings.jsonl. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { parseJson } from '../records/json.ts';
import type { Config } from '../train/config.ts';
import { isogymVersion } from './version.ts';

export const RUN_FORMAT = 'isogym.run/4';

const moduleSchema = z.object({ code: z.string(), declaration: z.string() });

const manifestSchema = z.object({
  format: z.literal(RUN_FORMAT),
  isogym: z.string(),
  node: z.string(),
  /** Bit equality holds within one major version of V8. */
  v8: z.string(),
  platform: z.string(),
  seed: z.int(),
  /** Only where the same seed does not give the same bytes. */
  mode: z.literal('throughput').optional(),
  /** See `configHash`. */
  config: z.string(),
  /** What was typed. */
  command: z.string(),
  /** Where tensors were computed; equal bytes are promised within one. */
  backend: z.string(),
  device: z.string(),
  /** Hashes of the bundled module that runs in the isolate, and of what is declared outside it. */
  environment: moduleSchema,
  verifier: moduleSchema,
  /** Hash of the task set. */
  tasks: z.string(),
});

export type Manifest = z.infer<typeof manifestSchema>;

export function createManifest(
  run: Pick<Manifest, 'command' | 'backend' | 'device' | 'environment' | 'verifier' | 'tasks'> & {
    readonly config: Config;
  },
): Manifest {
  const { command, backend, device, environment, verifier, tasks } = run;
  return {
    format: RUN_FORMAT,
    seed: run.config.seed,
    ...(run.config.rollouts.mode === 'throughput' ? { mode: run.config.rollouts.mode } : {}),
    ...engineOf(run.config),
    ...{ command, backend, device, environment, verifier, tasks },
  };
}

/** What this process would compute a config with. */
export function engineOf(config: Config): Pick<Manifest, 'isogym' | 'node' | 'v8' | 'platform' | 'config'> {
  return {
    isogym: isogymVersion(),
    node: process.versions.node,
    v8: process.versions.v8,
    platform: `${process.platform}-${process.arch}`,
    config: configHash(config),
  };
}

/** What the bytes of a run depend on. A replay neither judges nor computes tensors: it names no verifier and no backend. */
export type Grounds = Pick<Manifest, 'isogym' | 'v8' | 'platform' | 'config' | 'environment' | 'tasks'> &
  Partial<Pick<Manifest, 'verifier' | 'backend'>>;

/** What of a run is not as it was when it began, one line each; of what `now` leaves out nothing is said. */
export function changesSince(then: Manifest, now: Grounds): readonly string[] {
  const major = (version: string) => version.split('.')[0];
  const changes: string[] = [];
  const compare = (same: boolean, change: string) => {
    if (!same) changes.push(change);
  };
  for (const module of ['environment', 'verifier'] as const) {
    const is = now[module] ?? then[module];
    compare(then[module].code === is.code, `the ${module}'s code has changed`);
    compare(then[module].declaration === is.declaration, `what the ${module} declares has changed`);
  }
  compare(then.tasks === now.tasks, 'its tasks are others');
  compare(then.config === now.config, 'config.yaml has changed');
  compare(then.backend === (now.backend ?? then.backend), `it was on backend ${then.backend}`);
  compare(major(then.v8) === major(now.v8), `it was under V8 ${then.v8}, this is ${now.v8}`);
  compare(then.platform === now.platform, `it was on ${then.platform}, this is ${now.platform}`);
  compare(then.isogym === now.isogym, `it was under isogym ${then.isogym}, this is ${now.isogym}`);
  return changes;
}

/** @throws Error with what is wrong with the text, in one line */
export function parseManifest(text: string): Manifest {
  const found = parseJson(text);
  const result = manifestSchema.safeParse(found);
  if (result.success) return result.data;
  const format = (found as { readonly format?: unknown } | null)?.format;
  throw new Error(
    format === RUN_FORMAT
      ? result.error.issues.map((issue) => `${issue.path.join('.')}: ${lowerFirst(issue.message)}`).join('; ')
      : `of format ${RUN_FORMAT}, found ${format === undefined ? 'none' : JSON.stringify(format)}: another version of isogym may have made it`,
  );
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

/** SHA-256, in hexadecimal. */
export function hashText(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Keys that say where, how fast and how long, and not what is computed. */
const OPERATIONAL = ['name', 'backend', 'workers', 'iterations', 'checkpoint', 'runs'] as const;

/**
 * Hash of what a config computes: of everything but `OPERATIONAL` and where the worlds run, whatever the order of its keys.
 * Where the learning rate decays, every step depends on how many there will be.
 */
export function configHash(config: Config): string {
  const { isolation: _, ...environment } = config.environment;
  const rest: Record<string, unknown> = { ...config, environment };
  for (const key of OPERATIONAL) if (key !== 'iterations' || config.optimizer.decay === 0) delete rest[key];
  return hashJson(rest);
}

/** The same for the same data, whatever the order of its keys. */
export function hashJson(value: unknown): string {
  return hashText(JSON.stringify(sorted(value)));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, child]) => [key, sorted(child)]),
  );
}
