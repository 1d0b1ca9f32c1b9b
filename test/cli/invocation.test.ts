import { describe, expect, test } from 'vitest';
import { asTyped, invocation, SUBCOMMANDS } from '../../src/cli/invocation.ts';
import { program } from '../../src/cli/program.ts';

describe('a command is printed as it is typed where it was started', () => {
  const PATH = '/usr/bin:/usr/local/bin';
  test.each([
    ['npx isogym', 'by npx or an npm script', '/repo/bin/isogym.js', { PATH, npm_command: 'exec' }],
    ['isogym', 'by its name on the path', '/usr/local/bin/isogym', { PATH }],
    ['node /repo/bin/isogym.js', 'as a file', '/repo/bin/isogym.js', { PATH }],
    ["node '/my repo/bin/isogym.js'", 'as a file whose path has a space', '/my repo/bin/isogym.js', { PATH }],
    ['node /opt/x/isogym', 'by a link that is not on the path', '/opt/x/isogym', { PATH }],
  ])('%s where it was started %s', (expected, _, started, env) => {
    expect(invocation({ argv: ['node', started], env })).toBe(expected);
  });
});

test('commands in a text are rewritten, and nothing else', () => {
  const text = 'isogym made it: `isogym train --resume runs/isogym train`, or isogym COMMAND --help; not ./isogym show';
  expect(asTyped(text, 'npx isogym')).toBe(
    'isogym made it: `npx isogym train --resume runs/isogym train`, or npx isogym COMMAND --help; not ./isogym show',
  );
});

test('every command that there is can be rewritten', () => {
  for (const command of program().commands) expect(SUBCOMMANDS).toContain(command.name());
});
