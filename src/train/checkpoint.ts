/** @module A checkpoint's files: the weights as anyone can open them, the optimizer's memory, and how far the run was. */
import { z } from 'zod';
import type { Weights } from '../policy/model.ts';
import { readSafetensors, writeSafetensors } from '../policy/safetensors.ts';
import { IsogymError, inputError, messageOf } from '../records/errors.ts';
import { parseJson } from '../records/json.ts';
import type { WeightFiles } from './agent.ts';
import type { Carried } from './groups.ts';
import type { LearnerSnapshot } from './learner.ts';

export const CHECKPOINT_FORMAT = 'isogym.checkpoint/1';

/** How far a run was: `warm-start` after `step` supervised steps, `train` after `step` iterations. */
export interface Position {
  readonly phase: 'warm-start' | 'train';
  readonly step: number;
}

const stateSchema = z.strictObject({
  format: z.literal(CHECKPOINT_FORMAT),
  /** See `configHash`: a checkpoint goes on only under the config that it was made under. */
  config: z.string(),
  phase: z.enum(['warm-start', 'train']),
  step: z.int().min(0),
  version: z.int().min(0),
  updates: z.record(z.string(), z.int().min(0)),
  /** Of `acting.safetensors`, where there is one. */
  actingVersion: z.int().min(0).optional(),
  /** Reset level `state` had been lost by then: see `earned-reset.ts`. */
  resetLost: z.literal(true).optional(),
});

const episode = z.looseObject({ id: z.string(), group: z.string(), taskId: z.string(), hash: z.string() });
const carriedSchema = z.strictObject({
  drawn: z.int().min(0),
  suspended: z.array(episode),
  ended: z.array(episode),
});

const WEIGHTS = 'model.safetensors';
const OPTIMIZER = 'optimizer.safetensors';
const REFERENCE = 'reference.safetensors';
const CARRIED = 'carried.json';
const ACTING = 'acting.safetensors';
const STATE = 'state.json';

/** What the iterations before leave beside the weights. */
export interface Left {
  readonly carried?: Carried | undefined;
  /** Whose weights the next iteration rolls out with; absent where they are the learner's. */
  readonly acting?: Acting | undefined;
  readonly resetLost: boolean;
}

/** Weights that act while others are learnt. */
export interface Acting {
  readonly weights: Weights;
  /** Optimizer steps that they had behind them. */
  readonly version: number;
}

export type Files = Readonly<Record<string, string | Uint8Array>>;

/** Generators and the task cursor are not in it: both follow from the seed and the position, and where groups are carried over from `carried`. */
export function encodeCheckpoint(
  snapshot: LearnerSnapshot,
  position: Position,
  config: string,
  files: WeightFiles,
  { carried, acting, resetLost }: Left,
): Files {
  const state = {
    format: CHECKPOINT_FORMAT,
    config,
    ...position,
    version: snapshot.version,
    updates: snapshot.updates,
    ...(acting === undefined ? {} : { actingVersion: acting.version }),
    ...(resetLost ? { resetLost } : {}),
  };
  return {
    ...files.describe(),
    [WEIGHTS]: writeSafetensors(files.outward(snapshot.weights), { format: 'pt' }),
    [OPTIMIZER]: writeSafetensors({ ...prefixed('m.', snapshot.m), ...prefixed('v.', snapshot.v) }),
    ...(snapshot.reference === null ? {} : { [REFERENCE]: writeSafetensors(files.outward(snapshot.reference)) }),
    ...(acting === undefined ? {} : { [ACTING]: writeSafetensors(files.outward(acting.weights)) }),
    ...(carried === undefined ? {} : { [CARRIED]: `${JSON.stringify(carried)}\n` }),
    [STATE]: `${JSON.stringify(state, null, 2)}\n`,
  };
}

/** Where one of these (weights, the optimizer's memory) holds what is no number, e.g. `NaN in table`; null where none does. */
export function divergence(...all: readonly Weights[]): string | null {
  for (const [name, { data }] of all.flatMap((tensors) => Object.entries(tensors))) {
    const bad = data.find((x) => !Number.isFinite(x));
    if (bad !== undefined) return `${bad} in ${name}`;
  }
  return null;
}

/**
 * @param checkpoint `read` gives the content of one of its files, or null where there is none
 * @throws CHECKPOINT_BROKEN; CHECKPOINT_OTHER_CONFIG where it was made under another config
 */
export function decodeCheckpoint(
  { path, read }: { readonly path: string; readonly read: (file: string) => Buffer | null },
  config: string,
  files: WeightFiles,
): Left & { readonly snapshot: LearnerSnapshot; readonly position: Position } {
  const must = (file: string): Buffer => {
    const content = read(file);
    if (content === null) throw new Error(`${file} is missing`);
    return content;
  };
  try {
    const { config: madeUnder, ...state } = readState(must(STATE).toString());
    const { phase, step, version, updates, actingVersion, resetLost = false } = state;
    if (madeUnder !== config) {
      throw inputError(
        'CHECKPOINT_OTHER_CONFIG',
        `${path}: expected a checkpoint made under this config, found one made under another`,
        "Resume with the run's own config.yaml as it was written and the isogym that wrote it (its manifest.json has the version), or begin a new run.",
      );
    }
    const moments = readSafetensors(must(OPTIMIZER)).tensors;
    const reference = read(REFERENCE);
    const snapshot = {
      weights: files.inward(readSafetensors(must(WEIGHTS)).tensors),
      m: unprefixed('m.', moments),
      v: unprefixed('v.', moments),
      updates,
      version,
      reference: reference === null ? null : files.inward(readSafetensors(reference).tensors),
    };
    for (const tensors of [snapshot.m, snapshot.v]) checkAlike(snapshot.weights, tensors);
    checkFinite(WEIGHTS, snapshot.weights);
    checkFinite(OPTIMIZER, snapshot.m, snapshot.v);
    const carried = read(CARRIED);
    const acting = read(ACTING);
    if ((acting === null) !== (actingVersion === undefined)) {
      const missing = actingVersion === undefined ? `${STATE} lacks the version of ${ACTING}` : `${ACTING} is missing`;
      throw new Error(missing);
    }
    const left = {
      ...(carried === null ? {} : { carried: readCarried(carried) }),
      ...(acting === null || actingVersion === undefined
        ? {}
        : { acting: readActing(acting, actingVersion, version, files) }),
    };
    return { snapshot, position: { phase, step }, resetLost, ...left };
  } catch (error) {
    if (error instanceof IsogymError && error.code === 'CHECKPOINT_OTHER_CONFIG') throw error;
    throw new IsogymError('CHECKPOINT_BROKEN', `${path}: the checkpoint cannot be read: ${messageOf(error)}`, {
      cause: error,
      hint: `Delete ${path}: the run then goes on from the checkpoint before it, where there is one.`,
    });
  }
}

/** Its records are isogym's own, of this very checkpoint; what is checked is that it is whole. */
function readCarried(content: Buffer): Carried {
  const value = parseJson(content.toString());
  const found = carriedSchema.safeParse(value);
  // As it was written: the records' bytes depend on the order of their keys.
  if (found.success) return value as Carried;
  throw new Error(found.error.issues.map(({ path, message }) => `${CARRIED} ${path.join('.')}: ${message}`).join('; '));
}

/** @param learnt the version of the weights that learn */
function readActing(content: Buffer, version: number, learnt: number, files: WeightFiles): Acting {
  if (version > learnt) throw new Error(`expected an actingVersion of at most ${learnt}, found ${version}`);
  const weights = files.inward(readSafetensors(content).tensors);
  checkFinite(ACTING, weights);
  return { weights, version };
}

function checkFinite(file: string, ...all: readonly Weights[]): void {
  const diverged = divergence(...all);
  if (diverged !== null) throw new Error(`${file}: expected finite numbers, found ${diverged}`);
}

function readState(text: string): z.infer<typeof stateSchema> {
  const result = stateSchema.safeParse(JSON.parse(text));
  if (result.success) return result.data;
  throw new Error(result.error.issues.map((issue) => `${STATE} ${issue.path.join('.')}: ${issue.message}`).join('; '));
}

/** The optimizer remembers each weight, in its shape, and nothing else. */
function checkAlike(weights: Weights, memory: Weights): void {
  const shapes = (tensors: Weights) =>
    Object.entries(tensors).map(([name, { shape }]) => `${name} [${shape.join(', ')}]`);
  const [wanted, found] = [shapes(weights).sort(), shapes(memory).sort()];
  if (wanted.join() !== found.join()) {
    throw new Error(`expected the optimizer to remember ${wanted.join(', ')}, found ${found.join(', ') || 'nothing'}`);
  }
}

function prefixed(prefix: string, weights: Weights): Weights {
  return Object.fromEntries(Object.entries(weights).map(([name, tensor]) => [prefix + name, tensor]));
}

function unprefixed(prefix: string, weights: Weights): Weights {
  return Object.fromEntries(
    Object.entries(weights).flatMap(([name, tensor]) =>
      name.startsWith(prefix) ? [[name.slice(prefix.length), tensor]] : [],
    ),
  );
}
