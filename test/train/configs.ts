/** @module The smallest config that there is, and what is wrong with it once it is changed. */
import { configSchema } from '../../src/train/config.ts';

export const MINIMAL = {
  iterations: 1,
  environment: { module: 'toy-lookup' },
  verifier: { module: 'exact-answer' },
  policy: { kind: 'transformer' },
  batch: { groups: 1 },
  group: { size: 2 },
  optimizer: { learningRate: 1 },
};

/** `[path, message]` each; undefined where nothing is wrong. */
export function configProblems(change: object): readonly (readonly [string, string])[] | undefined {
  const found = configSchema.safeParse({ ...MINIMAL, ...change });
  return found.error?.issues.map(({ path, message }) => [path.join('.'), message] as const);
}
