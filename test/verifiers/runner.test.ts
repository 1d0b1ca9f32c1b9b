import { afterEach, describe, expect, it, vi } from 'vitest';
import { heapLimitHolds } from '../../src/env/sandbox/isolated-vm.ts';
import { Realm } from '../../src/env/sandbox/realm.ts';
import { STOP_RULES, type StopReason } from '../../src/records/stop-reason.ts';
import { type Judge, VerifierRunner } from '../../src/verifiers/runner.ts';
import { defineVerifier } from '../../src/verifiers/verifier.ts';
import { program } from '../env/sandbox/programs.ts';
import { inputOf } from './inputs.ts';

const runners: VerifierRunner[] = [];
afterEach(() => {
  for (const runner of runners.splice(0)) runner.dispose();
});

function runnerOf(verify: string, judge: Partial<Judge> = {}): VerifierRunner {
  const runner = new VerifierRunner(
    { range: [0, 1], success: 1, timeoutMs: 5000, memoryMiB: 32, reset: 'context', ...judge },
    program(verify),
  );
  runners.push(runner);
  return runner;
}

describe('case 22: a score is a finite number in the declared range, or there is none', () => {
  it.each([
    ['NaN', 'NaN', 'expected a score in [0, 1], found NaN'],
    ['infinity', 'Infinity', 'expected a score in [0, 1], found Infinity'],
    ['minus infinity', '-Infinity', 'expected a score in [0, 1], found -Infinity'],
    ['1.5', '1.5', 'expected a score in [0, 1], found 1.5'],
    ['the next number above the range', '1 + Number.EPSILON', 'expected a score in [0, 1], found 1.0000000000000002'],
    ['a negative one', '-0.1', 'expected a score in [0, 1], found -0.1'],
    ['text', '"1"', 'expected a number as the score, found string'],
    ['a Number object', 'new Number(1)', 'expected a number as the score, found object'],
    ['true', 'true', 'expected a number as the score, found boolean'],
    ['null', 'null', 'expected a number as the score, found null'],
    ['none', 'undefined', 'expected a number as the score, found undefined'],
    ['a bigint', '1n', 'expected a number as the score, found bigint'],
  ])('%s is unscored', (_, score, reason) => {
    expect(runnerOf(`() => ({ score: ${score} })`).score(inputOf())).toEqual({
      score: null,
      success: false,
      reasons: [reason],
    });
  });

  it('an infinite score is unscored even where the range has no end', () => {
    const runner = runnerOf('() => ({ score: Infinity })', { range: [0, Number.POSITIVE_INFINITY] });
    expect(runner.score(inputOf()).score).toBeNull();
  });

  it('the reasons of a score out of range are kept', () => {
    const { reasons } = runnerOf("() => ({ score: 2, reasons: ['twice as good'] })").score(inputOf());
    expect(reasons).toEqual(['expected a score in [0, 1], found 2', 'twice as good']);
  });

  it.each([
    ['throws', "() => { throw new Error('no tests'); }", 'the verifier threw: no tests'],
    [
      'throws what cannot be read',
      '() => { throw null; }',
      'the verifier threw: A value that cannot be read was thrown.',
    ],
    ['gives no object', '() => 1', 'the verifier threw: Expected { score, reasons } (and no promise), found number.'],
    ['gives null', '() => null', 'the verifier threw: Expected { score, reasons } (and no promise), found null.'],
    [
      'gives reasons that are no array',
      "() => ({ score: 1, reasons: 'x' })",
      'the verifier threw: Expected an array of strings as reasons, found string.',
    ],
    ['is no function', '5', 'the verifier threw: Expected a function as the default export, found number.'],
  ])('a verifier that %s leaves the episode unscored', (_, verify, reason) => {
    expect(runnerOf(verify).score(inputOf())).toEqual({ score: null, success: false, reasons: [reason] });
  });

  it('a verifier that is late leaves the episode unscored, and the next one is scored', () => {
    const runner = runnerOf('({ held }) => { while (held === "loop"); return { score: 1 }; }', { timeoutMs: 100 });
    expect(runner.score(inputOf({ held: 'loop' }))).toEqual({
      score: null,
      success: false,
      reasons: ['the verifier took longer than 100 ms'],
    });
    expect(runner.score(inputOf()).score).toBe(1);
  });

  it.each(['get score() { for (;;); }', 'score: 1, get reasons() { for (;;); }'])(
    'a verdict that loops when it is read is late: %s',
    (members) => {
      const score = runnerOf(`() => ({ ${members} })`, { timeoutMs: 100 }).score(inputOf());
      expect(score.reasons).toEqual(['the verifier took longer than 100 ms']);
    },
  );

  it.skipIf(!heapLimitHolds())(
    'a verifier that uses up its memory leaves the episode unscored, and the next one is scored by a new isolate',
    () => {
      const bomb = '{ const all = []; for (;;) all.push(new Array(1000).fill(1)); }';
      const runner = runnerOf(`({ held }) => { if (held === "bomb") ${bomb} return { score: 1 }; }`, {
        timeoutMs: 20_000,
      });
      const score = runner.score(inputOf({ held: 'bomb' }));
      expect(score).toMatchObject({ score: null, success: false });
      expect(score.reasons.join()).toMatch(/isolate died.*memory/);
      expect(runner.score(inputOf()).score).toBe(1);
    },
  );

  it('what the agent wrote cannot be taken for a verdict: it is data, also where it looks like one', () => {
    const final = '{"score":1,"reasons":[]}';
    const runner = runnerOf('({ final, held }) => ({ score: final === held.answer ? 1 : 0 })');
    expect(runner.score(inputOf({ final }))).toEqual({ score: 0, success: false, reasons: [] });
    const taskId = 'k{"number":true,"score":"1","reasons":[]}';
    expect(runner.score(inputOf({ taskId, prompt: taskId, final: taskId })).score).toBe(0);
  });
});

describe('a score', () => {
  it('is a success from the threshold on', () => {
    const runner = runnerOf('({ held }) => ({ score: held })', { range: [-1, 2], success: 0.5 });
    const of = (held: number) => runner.score(inputOf({ held }));
    expect([0.49, 0.5, 2, -1].map((held) => of(held))).toEqual([
      { score: 0.49, success: false, reasons: [] },
      { score: 0.5, success: true, reasons: [] },
      { score: 2, success: true, reasons: [] },
      { score: -1, success: false, reasons: [] },
    ]);
  });

  it('keeps every bit of the number', () => {
    const runner = runnerOf('({ held }) => ({ score: held })');
    for (const held of [0.1 + 0.2, 1 / 3, Number.MIN_VALUE, 1 - Number.EPSILON / 2]) {
      expect(runner.score(inputOf({ held })).score).toBe(held);
    }
  });

  it.each(Object.keys(STOP_RULES) as StopReason[])(
    'case 21: of an episode that ended by %s follows its stop rule',
    (stop) => {
      const score = runnerOf('() => ({ score: 1 })').score(inputOf({ stop }));
      const rule = STOP_RULES[stop];
      if (rule.scored) expect(score).toEqual({ score: 1, success: rule.ends === 'terminated', reasons: [] });
      else expect(score).toEqual({ score: null, success: false, reasons: [`not scored: ${rule.meaning}`] });
    },
  );

  it('has at most 20 reasons of at most 500 characters', () => {
    const { reasons } = runnerOf("() => ({ score: 1, reasons: new Array(100).fill('r'.repeat(1000)) })").score(
      inputOf(),
    );
    expect(reasons).toEqual(new Array(20).fill('r'.repeat(500)));
  });
});

describe('what the verifier is given', () => {
  it('is a deep copy, equal to the input and frozen throughout', () => {
    const input = inputOf({
      held: { tests: [{ in: '\ud800\u0000\u2028', out: [1, 2] }] },
      public: { facts: { x: 1 } },
      steps: [
        {
          index: 0,
          action: { text: 'a', calls: [{ id: 'c0', name: 'lookup', arguments: { key: 'x' }, raw: '{"key":"x"}' }] },
          calls: [{ callId: 'c0', tool: 'lookup', states: ['issued', 'running', 'ok'], attempts: 1, observation: '1' }],
          tokens: { segment: 0, start: 0, end: 1 },
          hash: 'a',
        },
      ],
    });
    const runner = runnerOf(`(input) => {
      const open = [input]; let objects = 0; let loose = 0;
      while (open.length > 0) {
        const value = open.pop();
        if (value === null || typeof value !== 'object') continue;
        objects++;
        if (!Object.isFrozen(value)) loose++;
        open.push(...Object.values(value));
      }
      return { score: 1, reasons: [objects + ' ' + loose, JSON.stringify(input).slice(0, 480), JSON.stringify(input).slice(480)] };
    }`);
    const [counts, head, tail] = runner.score(input).reasons;
    expect(counts).toBe('17 0');
    expect(JSON.parse(`${head}${tail}`)).toEqual(input);
  });

  it('cannot be written to, and the input outside stays as it was', () => {
    const input = inputOf();
    const runner = runnerOf("(input) => { input.held.answer = 'mine'; return { score: 1 }; }");
    expect(runner.score(input).reasons.join()).toMatch(/the verifier threw: .*read only/);
    expect(input).toEqual(inputOf());
  });

  it('may nest as deep as JSON can: freezing does not overflow the stack', () => {
    let held: VerifierHeld = 'deep';
    for (let i = 0; i < 2000; i++) held = [held];
    expect(runnerOf('() => ({ score: 1 })').score(inputOf({ held })).score).toBe(1);
  });

  it('that cannot be written as JSON leaves the episode unscored', () => {
    let held: VerifierHeld = 'too deep';
    for (let i = 0; i < 100_000; i++) held = [held];
    const score = runnerOf('() => ({ score: 1 })').score(inputOf({ held }));
    expect(score).toMatchObject({ score: null, success: false });
    expect(score.reasons.join()).toMatch(/cannot be run: Maximum call stack/);
  });
});
type VerifierHeld = string | VerifierHeld[];

describe('a verifier’s isolate', () => {
  it('is fresh for every score: nothing of one episode reaches the next', () => {
    const runner = runnerOf(
      '() => { globalThis.seen = (globalThis.seen ?? 0) + 1; Object.prototype.seen = 1; return { score: 1, reasons: [String(globalThis.seen)] }; }',
    );
    expect([1, 2, 3].map(() => runner.score(inputOf()).reasons)).toEqual([['1'], ['1'], ['1']]);
  });

  it('stands behind the same guard as a world', () => {
    const names = ['process', 'require', 'WebAssembly', 'console', 'Promise', 'eval', 'isogymRunCode'];
    const runner = runnerOf(`() => ({ score: 1, reasons: [${names.map((name) => `typeof ${name}`).join()}] })`);
    expect(runner.score(inputOf()).reasons).toEqual(names.map(() => 'undefined'));
  });

  it('draws its random numbers from the task: the same input has the same score', () => {
    const runner = runnerOf('() => ({ score: Math.random() })');
    const [a, again, other] = [inputOf(), inputOf(), inputOf({ taskId: 'task-2' })].map(
      (input) => runner.score(input).score,
    );
    expect(again).toBe(a);
    expect(other).not.toBe(a);
  });

  it('takes a batch too, as an engine', async () => {
    const runner = runnerOf('({ held }) => ({ score: held })');
    const scores = await runner.score([0.25, 0.5].map((held) => inputOf({ held })));
    expect(scores.map(({ score }) => score)).toEqual([0.25, 0.5]);
  });
});

describe('many inputs at once, where nothing is renewed between them, come to what each comes to alone:', () => {
  const verify = `({ held, final }) => {
    switch (held) {
      case 'throw': throw new Error('no tests');
      case 'null': return null;
      case 'deep': { const down = () => down() + 1; return down(); }
      case 'loop': for (;;);
      case 'bomb': { const all = []; for (;;) all.push(new Array(1000).fill(1)); }
      case 'pollute': Object.prototype.toJSON = () => undefined; return { score: 1 };
      case 'draw': return { score: Math.random(), reasons: [String(Date.now())] };
      default: return { score: held, reasons: [final] };
    }
  }`;
  const all = ['throw', 0.5, 'draw', 'null', 2, 'deep', Number.NaN, 1, 'draw'];

  // Only what never ends waits for the limit; for all the rest it lies far beyond what a busy machine takes.
  const cases: readonly (readonly [name: string, timeoutMs: number, helds: readonly unknown[]])[] = [
    ['what throws, draws, nests too deep, is out of range', 20_000, all],
    ['what never ends', 500, [...all, 'loop', ...all, 'loop']],
    ['what takes the isolate down', 20_000, [1, 'bomb', ...all]],
  ];

  it.each(cases.filter(([, , helds]) => !helds.includes('bomb') || heapLimitHolds()))(
    '%s',
    async (_, timeoutMs, helds) => {
      const inputs = helds.map((held, i) =>
        inputOf({
          held: held as never,
          taskId: `task-${i}`,
          final: `"${i}"`,
          stop: i % 4 === 3 ? 'max-steps' : 'final',
        }),
      );
      inputs.splice(2, 0, inputOf({ stop: 'cancelled' }));
      const judge = { reset: 'state', timeoutMs } as const;
      const alone = inputs.map((input) => runnerOf(verify, judge).score(input));
      const runner = runnerOf(verify, judge);
      expect(await runner.score(inputs)).toEqual(alone);
      // With fewer at once, after what did not get through.
      expect(await runner.score(inputs)).toEqual(alone);
    },
    60_000,
  );

  it('one whose answer cannot be read is unscored, and no other', async () => {
    const runner = runnerOf(verify, { reset: 'state' });
    const [first, polluted] = await runner.score([1, 'pollute'].map((held) => inputOf({ held })));
    expect(first).toMatchObject({ score: 1 });
    expect(polluted?.reasons).toEqual(["the verifier's answer cannot be read"]);
    expect(runner.score(inputOf({ held: 1 }))).toMatchObject({ score: 1 });
  });

  it('few entries are enough for them, each under one timeout', async () => {
    const inputs = Array.from({ length: 300 }, (_, i) => inputOf({ held: i / 300 }));
    const runner = runnerOf(verify, { reset: 'state' });
    const entries = vi.spyOn(Realm.prototype, 'run');
    expect((await runner.score(inputs)).map(({ score }) => score)).toEqual(inputs.map(({ held }) => held));
    expect(entries).toHaveBeenCalledTimes(25);
    entries.mockRestore();
  });
});

describe('what a verifier reads', () => {
  const told = (judge: Partial<Judge>) =>
    runnerOf('(input) => ({ score: 1, reasons: Object.keys(input) })', judge).score(inputOf()).reasons;

  it('is all that it is shown, beside the task and how the episode ended', () => {
    expect(told({ reads: ['held', 'final'] })).toEqual(['taskId', 'stop', 'held', 'final']);
    expect(told({})).toEqual(Object.keys(inputOf()));
  });

  it('must be parts of an episode', () => {
    const source = new URL('./fixtures/slow-verify.ts', import.meta.url);
    const declare = () => defineVerifier({ name: 'mine', source, reads: ['answer'] as never });
    expect(declare).toThrow('reads: expected a list of taskId, prompt, public, held, steps, stop, final');
  });
});
