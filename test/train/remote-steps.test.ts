import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type BackendName, selectBackend } from '../../src/policy/backends/select.ts';
import { modelOf } from '../../src/policy/models.ts';
import type { RemoteModel } from '../../src/train/remote-steps/protocol.ts';
import { RemoteSteps } from '../../src/train/remote-steps/remote-steps.ts';
import type { UpdateOptions } from '../../src/train/steps.ts';
import { stepsOf } from '../../src/train/steps-of.ts';
import { NATIVE, NATIVE_BACKEND } from '../policy/backends/native.ts';
import { SMALL, wildWeights } from '../policy/transformer/fixtures.ts';
import { OBJECTIVES, raggedBatch } from './replay-cases.ts';

const weights = wildWeights(SMALL, 'remote', 0.3);
const spec = { kind: 'transformer', config: SMALL } as const;
const optimizer = { learningRate: 3e-3, beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weightDecay: 0.1 };

const made: RemoteSteps[] = [];
afterEach(() => {
  for (const steps of made.splice(0)) steps.dispose();
});

function remote(model: Partial<RemoteModel> = {}): RemoteSteps {
  const steps = new RemoteSteps({ spec, backend: 'wasm', replay: true, ...model }, { weights });
  made.push(steps);
  return steps;
}

function options(seed: string, objective = OBJECTIVES.policy): UpdateOptions {
  const batch = raggedBatch({ lengths: [5, 16, 9, 30], vocabulary: SMALL.vocabulary, states: 3, seed });
  if (objective === undefined) throw new Error('no such objective');
  return { batch, microTokens: 60, objective, optimizer, maxNorm: 1, epochs: 2 };
}

const BACKENDS: readonly BackendName[] = NATIVE ? ['wasm', 'cpu', NATIVE_BACKEND] : ['wasm', 'cpu'];

describe.each(BACKENDS)('steps in a process of their own, on %s', (backend) => {
  beforeAll(() => selectBackend(backend));

  test('are those of this process, to the bit: figures, weights, moments, reference', async () => {
    const [here, there] = [stepsOf(modelOf(spec), true, { weights }), remote({ backend })];
    const objective = OBJECTIVES['policy with entropy and KL'];
    for (let step = 0; step < 4; step++) {
      if (step === 1) await Promise.all([here.anchor(), there.anchor()]);
      if (step === 2) await Promise.all([here.forget(), there.forget()]);
      const given = options(`${step}`, step === 0 ? OBJECTIVES.policy : objective);
      expect(await there.update(given)).toEqual(await here.update(given));
      for (const [name, mine] of Object.entries(here.weights)) {
        expect([...(there.weights[name]?.dataSync() ?? [])]).toEqual([...mine.dataSync()]);
      }
    }
    const snapshot = await there.snapshot();
    expect(snapshot).toEqual(await here.snapshot());
    expect(there.recordings).toBe(here.recordings);
    expect(there.tensorHandles === null).toBe(backend === 'wasm' || backend === 'cpu');

    // From a snapshot too.
    const again = new RemoteSteps({ spec, backend, replay: true }, snapshot);
    made.push(again);
    expect(await again.update(options('5', objective))).toEqual(await here.update(options('5', objective)));
    here.dispose();
  }, 60_000);
});

describe('what goes wrong in the process of the learner', () => {
  beforeAll(() => selectBackend('wasm'));

  test('is told here as it is told there, and leaves the weights as they were', async () => {
    const steps = remote();
    await steps.update(options('a'));
    const before = await steps.snapshot();
    const refused = steps.update(options('b', OBJECTIVES['policy with KL']));
    await expect(refused).rejects.toMatchObject({
      name: 'IsogymError',
      code: 'NO_REFERENCE',
      exitCode: 2,
      message: expect.stringContaining('expected a reference policy'),
      stack: expect.stringContaining('eager-steps'),
    });
    expect(await steps.snapshot()).toEqual(before);
    await steps.update(options('c'));
  }, 60_000);

  test('is a backend that does not work', async () => {
    const steps = remote({ backend: 'webgpu' });
    const expected = {
      code: 'BACKEND_UNAVAILABLE',
      message: expect.stringContaining('expected backend webgpu to work'),
    };
    await expect(steps.snapshot()).rejects.toMatchObject(expected);
    await expect(steps.update(options('a'))).rejects.toMatchObject(expected);
  }, 60_000);

  test('is its end: every call that waits is told, and every later one', async () => {
    const steps = remote();
    await steps.snapshot();
    const calls = [steps.update(options('a')), steps.snapshot()];
    steps.dispose();
    for (const call of [...calls, steps.snapshot()]) await expect(call).rejects.toMatchObject({ code: 'LEARNER_LOST' });
  }, 60_000);
});
