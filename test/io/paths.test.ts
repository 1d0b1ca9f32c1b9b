import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { quoted, shownPath } from '../../src/io/paths.ts';

test('a path is shown relative where it lies under the working folder, and absolute elsewhere', () => {
  expect(shownPath(join('/a', 'b', 'c'), '/a')).toBe(join('b', 'c'));
  expect(shownPath('/a', '/a')).toBe('.');
  expect(shownPath('/ab/..c', '/ab')).toBe('..c');
  expect(shownPath('/b', '/a')).toBe('/b');
});

test.skipIf(process.platform === 'win32')('a shell takes a quoted argument as it was', () => {
  for (const argument of ['runs/x', 'my runs/x', "it's", '', '$HOME `id` "x" \\', 'a\nb', '*', '-é']) {
    const { stdout } = spawnSync('sh', ['-c', `printf %s ${quoted(argument)}`], { encoding: 'utf8' });
    expect(stdout).toBe(argument);
  }
  expect(quoted('runs/toy-lookup-2')).toBe('runs/toy-lookup-2');
});
