/** @module What a run was: enough to tell whether two runs are comparable. It holds no clock time, see timings.jsonl. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Config } from '../train/config.ts';
import { isogymVersion } from './version.ts';

export const RUN_FORMAT = 'isogym.run/2';

const manifestSchema = z.object({
  format: z.literal(RUN_FORMAT),
  isogym: z.string(),
  node: z.string(),
  /** Bit equality holds within one major version of V8. */
  v8: z.string(),
  platform: z.string(),
  seed: z.int(),
  /** See `configHash`. */
  config: z.string(),
  /** What was typed. */
  command: z.string(),
  /** Where tensors were computed; equal bytes are promised within one. */
  backend: z.string(),
  device: z.string(),
  /** Hash of the bundled module that runs in the isolate. */
  modules: z.object({ environment: z.string(), verifier: z.string() }),
});

export type Manifest = z.infer<typeof manifestSchema>;

export function createManifest(
  run: Pick<Manifest, 'command' | 'modules' | 'backend' | 'device'> & { readonly config: Config },
): Manifest {
  return {
    format: RUN_FORMAT,
    isogym: isogymVersion(),
    node: process.versions.node,
    v8: process.versions.v8,
    platform: `${process.platform}-${process.arch}`,
    seed: run.config.seed,
    config: configHash(run.config),
    command: run.command,
    backend: run.backend,
    device: run.device,
    modules: run.modules,
  };
}

/** What of a run is not as it was when it began, one line each: it goes on, but not to the bytes that it would have come to. */
export function changesSince(then: Manifest, now: Manifest): readonly string[] {
  const major = (version: string) => version.split('.')[0];
  const changes: string[] = [];
  if (then.modules.environment !== now.modules.environment) changes.push("the environment's code has changed");
  if (then.modules.verifier !== now.modules.verifier) changes.push("the verifier's code has changed");
  if (then.backend !== now.backend) changes.push(`it was on backend ${then.backend}`);
  if (major(then.v8) !== major(now.v8)) changes.push(`it was under V8 ${then.v8}, this is ${now.v8}`);
  if (then.isogym !== now.isogym) changes.push(`it was under isogym ${then.isogym}, this is ${now.isogym}`);
  return changes;
}

/** @throws Error with what is wrong with the text, in one line */
export function parseManifest(text: string): Manifest {
  const found: unknown = JSON.parse(text);
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
  return hashText(JSON.stringify(sorted(rest)));
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
