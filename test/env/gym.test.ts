import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it, test } from 'vitest';
import { checkEnvironment } from '../../src/check/index.ts';
import { type GymClass, type GymPublic, mountGym, replayGym } from '../../src/env/gym/inside.ts';
import type { Step } from '../../src/records/trajectory.ts';
import { linesOf, trainShipped } from '../train/runs.ts';

const EXAMPLE = fileURLToPath(new URL('../../examples/frozen-lake/', import.meta.url));
const INSIDE = fileURLToPath(new URL('../../src/env/gym/inside.ts', import.meta.url));
const GYM = new URL('../../src/env/gym/index.ts', import.meta.url).href;
const VERIFIERS = new URL('../../src/verifiers/index.ts', import.meta.url).href;

/** Counts up to 3 or down; the reward is the number that is reached. */
class Counter implements GymClass {
  #at = 0;
  reset(seed: number) {
    this.#at = seed % 2;
    return { observation: this.#at };
  }
  step(action: number) {
    this.#at += action === 0 ? 1 : -1;
    return { observation: { at: this.#at }, reward: this.#at, terminated: this.#at === 3, truncated: this.#at === -3 };
  }
}

const task: GymPublic = { seed: 5, settings: null, actions: ['up', 'down'], first: '1' };
const world = (make: () => GymClass = () => new Counter()) => mountGym(make)({ public: task }).tools;
/** What an episode of these actions records. */
function played(actions: readonly string[], make?: () => GymClass): readonly Step[] {
  const tools = world(make);
  return actions.map((action, index) => {
    const call = { id: `call-${index + 1}`, name: 'step', arguments: { action }, raw: action };
    const record = { callId: call.id, tool: 'step', attempts: 1 };
    let calls: Step['calls'];
    try {
      calls = [{ ...record, states: ['issued', 'running', 'ok'], observation: tools.step({ action }) }];
    } catch (error) {
      calls = [{ ...record, states: ['issued', 'running', 'error'], observation: String(error), error: 'tool-error' }];
    }
    return {
      index,
      action: { text: action, calls: [call] },
      calls,
      tokens: { segment: 0, start: 0, end: 0 },
      hash: '',
    };
  });
}
const scored = (steps: readonly Step[], final: string | null = 'done') =>
  replayGym(() => new Counter())({ public: task as never, steps, final });

describe('a class with reset and step', () => {
  it('is one tool whose observations say where it stands, and never what it earned', () => {
    const { step } = world();
    expect([step({ action: 'up' }), step({ action: 'up' })]).toEqual(['{"at":2}', '{"at":3} terminated']);
    expect(() => step({ action: 'down' })).toThrow('the attempt is over: give the final answer, done');
  });

  it('is played again for its score: the sum of the rewards, to whatever end', () => {
    expect(scored(played(['up', 'up']))).toEqual({ score: 5, reasons: ['2 actions, to the end, rewards 5'] });
    expect(scored(played(['down', 'up', 'down']), null).score).toBe(1);
    expect(scored([]).score).toBe(0);
  });

  it('earns nothing by what comes after the end, or by a call that was refused', () => {
    expect(scored(played(['up', 'up', 'down', 'up'])).score).toBe(5);
    const [first, ...rest] = played(['up', 'up']) as [Step, ...Step[]];
    const refused = { ...first.calls[0]!, attempts: 0, error: 'invalid-arguments' };
    expect(scored([{ ...first, calls: [refused] }, ...played(['up', ...rest.map(() => 'up')])]).score).toBe(5);
  });

  it('has no score where the record is not what it comes to', () => {
    const [first, ...rest] = played(['up', 'up']) as [Step, ...Step[]];
    const changed = { ...first, calls: [{ ...first.calls[0]!, observation: '{"at":3}' }] };
    expect(() => scored([changed, ...rest])).toThrow(
      'step 1: played again it observes {"at":2}, the record says {"at":3}',
    );
    expect(() => scored(played(['up', 'up']), 'something else')).toThrow('expected the final answer done');
  });

  it.each<[string, object, string]>([
    ['no reward', { reward: undefined }, 'expected a finite reward'],
    ['a reward of NaN', { reward: Number.NaN }, 'expected a finite reward'],
    ['no ends', { terminated: undefined }, 'expected terminated and truncated'],
    ['no observation', { observation: undefined }, 'expected a JSON value as the observation'],
  ])('that gives %s fails the call', (_, wrong, message) => {
    const broken = { reset: () => ({ observation: 0 }), step: () => ({ ...new Counter().step(0), ...wrong }) as never };
    expect(() => world(() => broken).step({ action: 'up' })).toThrow(message);
  });
});

test('chance of its own, not of the seed, leaves episodes without a score, and the check says so', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'isogym-gym-'));
  afterAll(() => rmSync(dir, { recursive: true }));
  const write = (name: string, text: string) => {
    writeFileSync(join(dir, name), text);
    return pathToFileURL(join(dir, name));
  };
  write(
    'dice.ts',
    'export class Dice { reset() { return { observation: 0 }; } step() { const n = Math.random(); return { observation: n, reward: 1, terminated: true, truncated: false }; } }\n',
  );
  const half = (wrap: string) =>
    `import { ${wrap} } from '${INSIDE}';\nimport { Dice } from './dice.ts';\nexport default ${wrap}(() => new Dice());\n`;
  write('world.ts', half('mountGym'));
  write('verify.ts', half('replayGym'));
  const environment = write(
    'environment.ts',
    `import { gymEnvironment } from '${GYM}';\nimport { Dice } from './dice.ts';\n` +
      "export default gymEnvironment({ name: 'dice', make: () => new Dice(), world: new URL('./world.ts', import.meta.url), actions: ['roll'], prompt: 'Roll. ', maxSteps: 2, oracle: () => 'roll' });\n",
  );
  const verifier = write(
    'verifier.ts',
    `import { defineVerifier } from '${VERIFIERS}';\nexport default defineVerifier({ name: 'dice', source: new URL('./verify.ts', import.meta.url) });\n`,
  );
  const { checks } = await checkEnvironment({ environment, verifier });
  expect(checks.find(({ name }) => name === 'oracle')).toMatchObject({
    status: 'failed',
    seen: expect.stringContaining('scores nothing'),
  });
});

describe('the frozen lake', () => {
  const environment = join(EXAMPLE, 'environment.ts');
  const verifier = join(EXAMPLE, 'verifier.ts');

  it('passes every check', async () => {
    const { checks } = await checkEnvironment({ environment, verifier });
    expect(checks.filter(({ status }) => status !== 'passed')).toEqual([]);
  });

  it('is crossed by a table, from scratch', async () => {
    const { path, outcome } = await trainShipped(join(EXAMPLE, 'config.yaml'), [
      'workers=1',
      'backend=cpu',
      'evaluation.tasks=100',
    ]);
    if (outcome.interrupted) throw new Error('interrupted');
    const success = (name: string) =>
      outcome.summary.policies.find((row) => row.name === name)?.success.mean ?? Number.NaN;
    expect(success('untrained')).toBeLessThan(0.3);
    expect(success('trained')).toBeGreaterThan(0.95);
    // Every episode had a score: the replay came to the record each time.
    for (const { unscored } of linesOf<{ unscored: number }>(path, 'metrics.jsonl')) expect(unscored).toBe(0);
  });

  it('has thin ice too, whose chance is the seed’s: every episode can be played again', async () => {
    const overrides = [
      'workers=1',
      'backend=cpu',
      'iterations=2',
      'evaluation.tasks=50',
      'tasks.heldOut=50',
      'environment.options.slippery=true',
    ];
    const { path } = await trainShipped(join(EXAMPLE, 'config.yaml'), overrides);
    for (const { unscored } of linesOf<{ unscored: number }>(path, 'metrics.jsonl')) expect(unscored).toBe(0);
  });
});
