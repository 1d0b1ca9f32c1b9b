import { afterEach, describe, expect, it } from 'vitest';
import { CODE_DEFAULTS, type CodeLimits, CodeSandbox } from '../../../src/env/sandbox/code.ts';
import { WorldHost } from '../../../src/env/sandbox/world-host.ts';
import { hostOf, program } from './programs.ts';

const open: { dispose(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.dispose();
});

function sandbox(limits: Partial<CodeLimits> = {}): CodeSandbox {
  const made = new CodeSandbox({ ...CODE_DEFAULTS, timeoutMs: 2000, ...limits });
  open.push(made);
  return made;
}

describe('a policy’s code', () => {
  it('is run on each of its inputs, in order, and a failure on one is no failure on the next', () => {
    const run = sandbox().session();
    expect(run('(x) => { if (x === 2) throw new Error("two"); return [x]; }', ['1', '2', '3'])).toEqual([
      { ok: true, json: '[1]' },
      { ok: false, failure: 'error', message: 'two' },
      { ok: true, json: '[3]' },
    ]);
    expect(run('(x) => x', [])).toEqual([]);
  });

  it('has one context for all inputs of a run, and a fresh one for each run', () => {
    const run = sandbox().session();
    const counting = '() => (globalThis.n = (globalThis.n ?? 0) + 1)';
    const values = (inputs: string[]) => run(counting, inputs).map((outcome) => outcome.ok && outcome.json);
    expect(values(['0', '0'])).toEqual(['1', '2']);
    expect(values(['0'])).toEqual(['1']);
  });

  it('may be run as often as the session allows; each session counts for itself', () => {
    const made = sandbox({ maxRuns: 2 });
    const [one, other] = [made.session(), made.session()];
    const failures = (run: typeof one) => run('(x) => x', ['1', '2']).map((o) => (o.ok ? o.json : o.failure));
    expect([failures(one), failures(one), failures(one)]).toEqual([
      ['1', '2'],
      ['1', '2'],
      ['too-many-calls', 'too-many-calls'],
    ]);
    expect(failures(other)).toEqual(['1', '2']);
  });

  it('that crosses a bound of the whole run has that outcome for all inputs, and the next run is as ever', () => {
    const run = sandbox({ timeoutMs: 200 }).session();
    const late = { ok: false, failure: 'timeout', message: 'The code ran longer than 200 ms.' };
    expect(run('(x) => { while (x === 2); return x; }', ['1', '2', '3'])).toEqual([late, late, late]);
    expect(run('(x) => x', ['1'])).toEqual([{ ok: true, json: '1' }]);
  });

  it('draws the same chance at every run, and sees the same clock', () => {
    const run = sandbox().session();
    const [first, again] = [0, 1].map(() => run('() => [Math.random(), Date.now(), new Date().getHours()]', ['0']));
    expect(again).toEqual(first);
  });

  it('leaves memory behind for nobody: garbage of one run shortens no other', () => {
    const run = sandbox({ timeoutMs: 10_000 }).session();
    const hoard =
      '() => { globalThis.all = Array.from({ length: 200 }, () => new Array(10000).fill(0.5)); return all.length; }';
    for (let i = 0; i < 20; i++) expect(run(hoard, ['0'])).toEqual([{ ok: true, json: '200' }]);
  });
});

describe('a world that may run it', () => {
  const worldOf = (body: string) =>
    program(`({ runCode }) => { const secret = 'the answer'; return { tools: { body: (args) => { ${body} } } }; }`);
  const call = (body: string, args: object) => {
    const host = new WorldHost({
      script: worldOf(body),
      reset: 'state',
      memoryMiB: 32,
      code: { ...CODE_DEFAULTS, maxRuns: 2 },
    });
    open.push(host);
    const session = host.open('null', 'seed');
    return [session.call('body', JSON.stringify(args), 5000), host] as const;
  };

  it('gets outcomes as plain data of its own context', () => {
    const body =
      'const [o] = runCode(args.code, ["2"]); return JSON.stringify([o, Object.getPrototypeOf(o) === Object.prototype]);';
    expect(call(body, { code: '(x) => x + 1' })[0]).toEqual({ status: 'ok', text: '[{"ok":true,"json":"3"},true]' });
  });

  it('shares no global, no prototype and no variable with it', () => {
    const body = 'runCode(args.code, ["0"]); return [typeof globalThis.mine, {}.mine, [].concat(1).length].join();';
    const code =
      '() => { globalThis.mine = 1; Object.prototype.mine = 1; Array.prototype.concat = () => []; return typeof secret; }';
    expect(call(body, { code })[0]).toEqual({ status: 'ok', text: 'undefined,,1' });
  });

  it('starts each episode with a new count, also where its realm is used again', () => {
    const body = 'return [1, 2, 3].map(() => runCode("(x) => x", ["0"])[0].failure ?? "ran").join();';
    const [first, host] = call(body, {});
    expect(first).toEqual({ status: 'ok', text: 'ran,ran,too-many-calls' });
    for (let i = 0; i < 2; i++) {
      const session = host.open('null', 'next');
      expect(session.call('body', '{}', 5000)).toEqual(first);
      session.close();
    }
  });

  it('that declares none is told so', () => {
    const host = hostOf(worldOf('return runCode("(x) => x", ["0"]);'));
    open.push(host);
    expect(host.open('null', 's').call('body', '{}', 5000)).toMatchObject({
      status: 'error',
      message: expect.stringContaining('no "code"'),
    });
  });
});
