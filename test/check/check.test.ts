import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it, test } from 'vitest';
import { type CheckReport, checkEnvironment } from '../../src/check/index.ts';

const SMALL = new URL('./fixtures/small/environment.ts', import.meta.url);
const ENV = new URL('../../src/env/index.ts', import.meta.url).href;
const ZOD = import.meta.resolve('zod');
const VERIFIERS = new URL('../../src/verifiers/index.ts', import.meta.url).href;
const dir = mkdtempSync(join(tmpdir(), 'isogym-check-'));
afterAll(() => rmSync(dir, { recursive: true }));

let number = 0;
/** A module of its own with this text; imports resolve to this repository. */
function written(text: string): URL {
  const file = join(dir, `module-${number++}.ts`);
  writeFileSync(file, text);
  return pathToFileURL(file);
}
/** The small environment with something about it broken. */
const broken = (change: string, before = '') =>
  written(`import good, { tool } from '${SMALL.href}';\n${before}\nexport default { ...good, ${change} };\n`);
const world = (text: string) => `world: new URL('${written(text).href}')`;
const verifier = (text: string) =>
  written(
    `import { defineVerifier } from '${VERIFIERS}';\nexport default defineVerifier({ name: 'mine', source: new URL('${written(text).href}') });\n`,
  );
const failures = ({ checks }: CheckReport) => checks.flatMap(({ name, status }) => (status === 'failed' ? [name] : []));

describe('what is sound passes', () => {
  test.each([
    ['toy-lookup', 'exact-answer'],
    ['js-puzzles', 'function-cases'],
  ])('%s with %s', async (environment, judge) => {
    expect(failures(await checkEnvironment({ environment, verifier: judge }))).toEqual([]);
  });

  test('a reset between no calls at all is not one that was seen to hold', async () => {
    const { checks } = await checkEnvironment({ environment: broken('tools: [], scripts: {}') });
    expect(checks.find(({ name }) => name === 'reset')).toMatchObject({ status: 'skipped' });
  });

  test('the small one, every check of it, and the same report again', async () => {
    const report = await checkEnvironment({ environment: SMALL, verifier: 'exact-answer' });
    expect(report.checks.map(({ name, status }) => `${status} ${name}`)).toEqual([
      'passed tasks',
      'passed grammar',
      'passed errors of peek',
      'passed schema of peek',
      'passed same seed',
      'passed other seed',
      'passed reset',
      'passed close',
      'passed fork',
      'passed scripts',
      'passed tabular',
      'passed limits',
      'passed oracle',
      'passed verifier',
      'passed held',
    ]);
    expect(report).toMatchObject({ environment: 'small', verifier: 'exact-answer', passed: true });
    expect(report.checks.at(-1)?.seen).toMatch(/observations of \d+ hold the answer's own values/);
    expect(await checkEnvironment({ environment: SMALL, verifier: 'exact-answer' })).toEqual(report);
  });

  test('without a verifier nothing is judged, and that is said', async () => {
    const { checks, passed, verifier: none } = await checkEnvironment({ environment: SMALL });
    expect({ passed, none }).toEqual({ passed: true, none: null });
    expect(checks.filter(({ status }) => status === 'skipped').map(({ name }) => name)).toEqual(['oracle', 'verifier']);
  });

  test('options reach task(), and wrong ones are refused', async () => {
    const report = await checkEnvironment({ environment: 'toy-lookup', options: { values: 9 } });
    expect(report.passed).toBe(true);
    await expect(checkEnvironment({ environment: 'toy-lookup', options: { values: 1 } })).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
    });
  });
});

describe('what is broken fails the check that is about it', () => {
  const PEEK = '(secret, offset) => String(Number(secret) + offset)';
  const create = (body: string, top = '') =>
    `${top}\nconst peek = ${PEEK};\nexport default ({ public: { secret }, random }) => { ${body} };\n`;

  it.each<[string, readonly string[], () => URL, RegExp]>([
    [
      'tasks that count their calls',
      ['tasks'],
      () =>
        broken(
          'task: (seed, index) => ({ ...good.task(seed, index, {}), held: { answer: String(1000 + n++) } })',
          'let n = 0;',
        ),
      /differs in its held/,
    ],
    [
      'tasks of one id',
      ['tasks'],
      () => broken("task: (seed, index) => ({ ...good.task(seed, index, {}), id: 'x' })"),
      /24 tasks have 1 different ids/,
    ],
    [
      'a task that is not JSON',
      ['tasks'],
      () => broken('task: () => ({ ...good.task("", 0, {}), public: 1n })'),
      /bigint/,
    ],
    [
      'one and the same task',
      ['other seed'],
      () => broken('task: (_, index) => ({ ...good.task("", 0, {}), id: "t" + index })'),
      /0 of 24 tasks change/,
    ],
    ['a world that throws', ['world'], () => broken(world(create('throw new Error("no way")'))), /no way/],
    [
      'a world without the tool',
      ['schema of peek', 'oracle'],
      () => broken(world(create('return { tools: {} }'))),
      /no tool "peek"/,
    ],
    [
      'a tool that returns no string',
      ['schema of peek', 'oracle'],
      () => broken(world(create('return { tools: { peek: ({ offset }) => Number(secret) + offset } }'))),
      /must return a string, it returned number/,
    ],
    [
      'a tool that loops on some arguments',
      ['schema of peek'],
      () =>
        broken(
          world(
            create(
              'return { tools: { peek: ({ offset }) => { for (; offset === 7; ); return peek(secret, offset); } } }',
            ),
          ),
        ),
      /timeout: /,
    ],
    [
      'a tool that only fails',
      ['schema of peek', 'oracle'],
      () => broken(world(create('return { tools: { peek: () => { throw new Error("busy"); } } }'))),
      /all of 10 calls drawn from the schema are errors, the first: .*busy/,
    ],
    [
      'state in a module variable, at level state',
      ['reset'],
      () =>
        broken(
          `reset: 'state', ${world(create('return { tools: { peek: ({ offset }) => n++ > 3 ? "9999" : peek(secret, offset) } }', 'let n = 0;'))}`,
        ),
      /at level state task small-\d+, call \d \(peek\): "9999", fresh "\d+"/,
    ],
    [
      'a snapshot that forgets',
      ['fork'],
      () =>
        broken(
          world(
            create(
              `let last = 0;
              return {
                snapshot: () => secret,
                restore: () => {},
                tools: { peek: ({ offset }) => { last += offset; return offset === 0 ? secret : peek(secret, last % 10); } },
              };`,
            ),
          ),
        ),
      /forked after \d+ calls: call \d+ \(peek\) gives "\d+", without the fork "\d+"/,
    ],
    [
      'a script with chance of its own',
      ['same seed', 'oracle'],
      () => broken('scripts: { oracle: () => ({ final: String(1000 + Math.floor(9000 * Math.random())) }) }'),
      /scripted:oracle, task small-0: two episodes of one seed differ from step 1 on/,
    ],
    [
      'a script that never comes back',
      ['scripts', 'limits', 'oracle'],
      () =>
        broken(
          'task: (s, i) => good.task(s, i % 24, {}), scripts: { oracle: ({ task }) => { for (; task.id === "small-3"; ); return { final: "1000" }; } }',
        ),
      /oracle, task small-3: policy-failure, expected an end within 5000 ms/,
    ],
    [
      'a script that writes what the grammar does not have',
      ['scripts', 'oracle'],
      () => broken('scripts: { oracle: () => ({ final: "nothing" }) }'),
      /the grammar does not admit "{\\"final\\":\\"nothing\\"}"/,
    ],
    [
      'tools that do not suit the format',
      ['declaration'],
      () =>
        broken(
          `format: 'compact', tools: [{ ...tool, parameters: tool.parameters.extend({ more: z.string() }).strict() }]`,
          `import { z } from '${ZOD}';`,
        ),
      /the compact format wants exactly one parameter for each tool, found offset, more in peek/,
    ],
    [
      'a schema without a grammar',
      ['grammar'],
      () => broken('tools: [{ ...tool, parameters: tool.parameters.refine(() => true) }]'),
      /does not support a refinement/,
    ],
    [
      'a schema that lets unknown arguments pass',
      ['errors of peek'],
      () => broken('tools: [{ ...tool, parameters: z.object(tool.parameters.shape) }]', `import { z } from '${ZOD}';`),
      /extra argument: expected invalid-arguments, found a result/,
    ],
    [
      'a view with a state too many',
      ['tabular'],
      () => broken('tabular: { ...good.tabular, observe: () => 2 }'),
      /expected a state from 0 to 1, found 2/,
    ],
    [
      'too few steps',
      ['limits', 'oracle'],
      () => broken('limits: { ...good.limits, maxSteps: 1 }'),
      /the oracle cannot finish: task small-0: max-steps/,
    ],
    [
      'a prompt that tells',
      ['held'],
      () =>
        broken('task: (s, i) => { const t = good.task(s, i, {}); return { ...t, prompt: "Not " + t.held.answer }; }'),
      /the prompts of 24 of 24 tasks hold their answer/,
    ],
    [
      'a public part that tells',
      ['held'],
      () =>
        broken(
          'task: (s, i) => { const t = good.task(s, i, {}); return { ...t, public: { ...t.public, ...t.held } }; }',
        ),
      /public.answer is held.answer/,
    ],
    [
      'public that has what is held further in, the number for the text',
      ['held'],
      () =>
        broken(
          'task: (s, i) => { const t = good.task(s, i, {}); return { ...t, public: { ...t.public, notes: [{ answer: Number(t.held.answer) }] } }; }',
        ),
      /all that is held stands in public too/,
    ],
  ])('%s', async (_, expected, environment, seen) => {
    const report = await checkEnvironment({ environment: environment(), verifier: 'exact-answer' });
    expect(failures(report)).toEqual(expect.arrayContaining([...expected]));
    const [first] = report.checks.filter(({ name }) => name === expected[0]);
    expect(first?.seen).toMatch(seen);
    expect(first?.hint).toBeTruthy();
    expect(report.checks.filter(({ hint }) => hint?.includes('fault of isogym'))).toEqual([]);
    expect(report.passed).toBe(false);
  });

  it('state in a module variable is no fault at level context, and what level state would show is told', async () => {
    const leaky = create(
      'return { tools: { peek: ({ offset }) => n++ > 3 ? "9999" : peek(secret, offset) } }',
      'let n = 0;',
    );
    const { checks } = await checkEnvironment({ environment: broken(world(leaky)) });
    const reset = checks.find(({ name }) => name === 'reset');
    expect(reset).toMatchObject({ status: 'passed', seen: expect.stringContaining('below it state would leak') });
  });

  it.each([
    ['passes everything', 'export default () => ({ score: 1 });', 'verifier', /the canary .* is a success/],
    [
      'passes any number',
      'export default ({ final }) => ({ score: /^\\d+$/.test(final ?? "") ? 1 : 0 });',
      'verifier',
      /takes 24 of 24 answers of other tasks/,
    ],
    [
      'throws without an answer',
      'export default ({ final, held }) => ({ score: final.trim() === held.answer ? 1 : 0 });',
      'verifier',
      /without a final answer has no score/,
    ],
    [
      'passes nothing',
      'export default () => ({ score: 0, reasons: ["never"] });',
      'oracle',
      /0 of 24 tasks solved; task small-0: \d+ scores 0: never/,
    ],
  ])('a verifier that %s', async (_, text, name, seen) => {
    const report = await checkEnvironment({ environment: SMALL, verifier: verifier(text) });
    expect(report.checks.find((check) => check.name === name)?.seen).toMatch(seen);
    expect(failures(report)).toContain(name);
  });

  it('what cannot even be read is an error, with all that is wrong', async () => {
    const nothing = written(
      `import { defineEnvironment } from '${ENV}';\nexport default defineEnvironment({ name: 'Odd' });\n`,
    );
    await expect(checkEnvironment({ environment: nothing })).rejects.toMatchObject({
      code: 'INVALID_ENVIRONMENT',
      message: expect.stringMatching(/name: .*; options: .*; world: .*; answer: .*; task: .*; tools: /),
    });
  });
});
