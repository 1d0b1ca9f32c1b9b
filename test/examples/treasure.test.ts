import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { checkEnvironment } from '../../src/check/index.ts';
import { freshFolder } from '../train/runs.ts';

const EXAMPLE = fileURLToPath(new URL('../../examples/treasure/', import.meta.url));

test('an environment and a verifier of one’s own are trained from code', () => {
  const dir = freshFolder();
  const out = execFileSync(process.execPath, [`${EXAMPLE}train.ts`, `runs.dir=${dir}`], { encoding: 'utf8' });
  const success = (name: string) => Number(new RegExp(`^${name}: success ([\\d.]+) greedy`, 'm').exec(out)?.[1]);
  expect(success('random')).toBeLessThan(0.6);
  expect(success('trained')).toBe(1);
  expect(success('oracle')).toBe(1);
});

test('an episode is gone on with in another way, and a world is forked', () => {
  const out = execFileSync(process.execPath, [`${EXAMPLE}what-if.ts`], { encoding: 'utf8' });
  const [first, second, ...states] = out.trimEnd().split('\n');
  expect(first).toMatch(/^first: open a \| .*answer \w+$/);
  expect(second).toBe('second: open a | open d | answer opal');
  expect(states).toEqual(['one state: true', 'one state still: false']);
});

test('the example passes isogym check', async () => {
  const { checks } = await checkEnvironment({
    environment: `${EXAMPLE}environment.ts`,
    verifier: `${EXAMPLE}verifier.ts`,
  });
  expect(checks.filter(({ status }) => status !== 'passed')).toEqual([]);
});

test('the example uses the public API alone', () => {
  for (const file of readdirSync(EXAMPLE).filter((name) => name.endsWith('.ts'))) {
    const imports = [...readFileSync(EXAMPLE + file, 'utf8').matchAll(/from '([^']+)'/g)].map(
      (match) => match[1] as string,
    );
    for (const name of imports) expect(name, file).toMatch(/^(isogym(\/\w+)?|node:\w+|zod|\.\/\w+\.ts)$/);
  }
});
