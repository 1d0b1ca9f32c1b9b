import { createManifest, type Manifest } from '../../src/io/manifest.ts';
import { type Config, configSchema } from '../../src/train/config.ts';

export const someConfig: Config = configSchema.parse({
  iterations: 3,
  environment: { module: 'toy-lookup' },
  verifier: { module: 'exact-answer' },
  policy: { kind: 'tabular' },
  batch: { groups: 2 },
  group: { size: 4 },
  optimizer: { learningRate: 0.01 },
});

export function manifestOf(config: Config): Manifest {
  return createManifest({
    config,
    command: 'isogym train --config x.yaml',
    backend: 'wasm',
    device: 'a processor',
    environment: { code: 'e', declaration: 'd' },
    verifier: { code: 'v', declaration: 'd' },
    tasks: 't',
  });
}
