import { expect, test } from 'vitest';
import type { SandboxFailure } from '../../src/records/trajectory.ts';
import { iterationMetrics } from '../../src/train/metrics.ts';
import { judge } from '../../src/train/returns.ts';
import { episode } from './made.ts';

test('failures of the sandbox are counted by kind, and only those that occurred', () => {
  const unscored = { score: null, success: false, reasons: [] };
  const failed = (failure: SandboxFailure) => judge({ ...episode({ stop: 'sandbox-failure' }), failure }, unscored, 0);
  const trajectories = [
    failed('hang'),
    failed('out-of-memory'),
    failed('hang'),
    judge(episode({}), { score: 1, success: true, reasons: [] }, 0),
  ];
  const metrics = iterationMetrics({
    iteration: 0,
    trajectories,
    batch: null,
    version: 1,
    advantages: { groups: 1, zeroVariance: 0, singletons: 1, unusable: 3 },
    update: { microBatches: 1, paddingShare: 0, steps: [] },
    rate: 1,
  });
  expect(metrics.stops).toEqual({ final: 1, 'sandbox-failure': 3 });
  expect(JSON.stringify(metrics.sandboxFailures)).toBe('{"out-of-memory":1,"hang":2}');
  expect(metrics.usable).toBe(1);
});
