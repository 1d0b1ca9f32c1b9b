import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { program } from '../../src/cli/program.ts';

const ROOT = new URL('../../', import.meta.url);
const README = readFileSync(new URL('README.md', ROOT), 'utf8');
const blocks = [...README.matchAll(/^```\w*\n(.*?)^```$/gms)].map(([, text = '']) => text);

/** The paths of the annotated tree: indented ones stand below the folder before them. */
function pathsOfTree(tree: string): readonly string[] {
  let folder = '';
  return tree.split('\n').flatMap((line) => {
    const paths = line
      .trim()
      .split(/ {2,}/)
      .map((piece) => piece.split(', '))
      .filter((words) => words.every((word) => /^[\w.-]+(\/[\w.-]*)*$/.test(word) && /[./]/.test(word)))
      .flat();
    if (!line.startsWith(' ')) folder = paths[0] ?? '';
    return line.startsWith(' ') ? paths.map((path) => folder + path) : paths;
  });
}

test('the annotated tree names what there is, and every folder', () => {
  const tree = pathsOfTree(blocks.find((block) => block.startsWith('configs/')) ?? '');
  expect(tree.length).toBeGreaterThan(30);
  expect(tree.filter((path) => !existsSync(new URL(path, ROOT)))).toEqual([]);
  const foldersIn = (path: string) =>
    readdirSync(new URL(path, ROOT), { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && !/^(\.|node_modules$|dist$|runs$|coverage$)/.test(entry.name))
      .map(({ name }) => `${path}${name}/`.replace(/^\.\//, ''));
  const named = (folder: string) => tree.some((path) => path.startsWith(folder));
  expect([...foldersIn('./'), ...foldersIn('src/')].filter((folder) => !named(folder))).toEqual([]);
});

test('every command that is shown is one, and every document is linked to', () => {
  const shown = [...README.matchAll(/npx isogym (\w+)/g)].map(([, name]) => name);
  const known = program().commands.map((command) => command.name());
  expect(shown.filter((name) => !known.includes(name ?? ''))).toEqual([]);
  expect(known.filter((name) => !['setup', 'bench'].includes(name) && !shown.includes(name))).toEqual([]);
  const documents = readdirSync(new URL('docs/', ROOT)).filter((file) => file.endsWith('.md'));
  expect(documents.filter((file) => !README.includes(`(docs/${file})`))).toEqual([]);
});
