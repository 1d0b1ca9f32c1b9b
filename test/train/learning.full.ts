import { describe, expect, test } from 'vitest';
import { runStepPenalty } from '../../src/exercises/step-penalty/run.ts';
import type { PolicyName } from '../../src/train/evaluate.ts';
import { SILENT } from '../../src/train/reporter.ts';
import type { Summary } from '../../src/train/summary.ts';
import { trainShipped } from './runs.ts';

async function summaryOf(config: string, overrides: readonly string[]): Promise<Summary> {
  const { outcome } = await trainShipped(config, overrides);
  if (outcome.interrupted) throw new Error('expected a run that came to its end');
  const { policies, wallSeconds } = outcome.summary;
  const figures = policies.map(
    (p) => `${p.name} ${p.success.mean.toFixed(3)} greedy ${p.sampledSuccess.mean.toFixed(3)} sampled`,
  );
  console.log(
    `${config} ${overrides.join(' ')}, ${outcome.summary.backend}: ${figures.join(', ')}; ${wallSeconds.toFixed(0)} s`,
  );
  return outcome.summary;
}

const rowOf = (summary: Summary, name: PolicyName) => summary.policies.find((row) => row.name === name)!;

// On the backend that everybody has: README's figures.
describe.each(['toy-lookup.yaml', 'toy-lookup-reinforce.yaml'])('%s, as shipped, 500 held-out tasks', (config) => {
  test.each([0, 1, 2])('RL adds what the warm start did not teach, seed %i', async (seed) => {
    const summary = await summaryOf(config, [`seed=${seed}`, 'backend=wasm']);
    expect(rowOf(summary, 'untrained').success.mean).toBeLessThan(0.02);
    expect(rowOf(summary, 'warm-start').success.mean).toBeLessThanOrEqual(0.3);
    expect(rowOf(summary, 'trained').success.mean).toBeGreaterThanOrEqual(0.95);
    expect(rowOf(summary, 'oracle').success.mean).toBe(1);
    expect(summary.gain.over).toBe('warm-start');
    expect(summary.gain.success.low).toBeGreaterThan(0);
    expect(summary.gain.sampledSuccess.low).toBeGreaterThan(0);
  });
});

test('toy-lookup.yaml on the backend that auto takes: native, where it is set up', async () => {
  const summary = await summaryOf('toy-lookup.yaml', ['seed=0']);
  expect(rowOf(summary, 'warm-start').success.mean).toBeLessThanOrEqual(0.3);
  expect(rowOf(summary, 'trained').success.mean).toBeGreaterThanOrEqual(0.95);
});

test.each([0, 1, 2, 3, 4])('toy-lookup-tabular.yaml learns the full path from scratch, seed %i', async (seed) => {
  const summary = await summaryOf('toy-lookup-tabular.yaml', [`seed=${seed}`]);
  expect(rowOf(summary, 'trained').success.mean).toBe(1);
  expect(rowOf(summary, 'trained').return.mean).toBeCloseTo(0.8, 6);
});

test('the step-penalty exercise: the optimum is the full path at every penalty, and a high one leads learning astray', async () => {
  const { summary, text } = await runStepPenalty({ signal: new AbortController().signal, reporter: SILENT });
  console.log(text);
  for (const row of summary.rows) {
    expect(row.optimum.behaviour).toBe('full path');
    expect(row.learnt.return.high).toBeLessThanOrEqual(row.optimum.return + 0.02);
  }
  for (const row of summary.rows.filter(({ penalty }) => penalty <= 0.05)) expect(row.learnt.elsewhere).toBe(0);
  expect(summary.rows.at(-1)?.learnt.elsewhere).toBeGreaterThan(0);
});
