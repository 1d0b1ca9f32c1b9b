/** @module How a person runs isogym here, so that each command that is printed can be typed as it stands. */
import { basename, delimiter, dirname } from 'node:path';
import { quoted, shownPath } from '../io/paths.ts';

/** What may follow `isogym` in a text of ours: the commands, and what stands for one. */
export const SUBCOMMANDS = [
  ...['train', 'eval', 'show', 'setup', 'doctor', 'exercise', 'bench', 'init', 'check', 'replay', 'help'],
  ...['--help', 'COMMAND'],
] as const;

/** All of a process that tells how it was started. */
export interface Started {
  readonly argv: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

/** `npx isogym` where npm started it, `isogym` where the shell finds it by that name, and else the file that was run. */
export function invocation({ argv, env }: Started = process): string {
  if (env.npm_command !== undefined) return 'npx isogym';
  const started = argv[1] ?? 'isogym';
  const folders = (env.PATH ?? '').split(delimiter);
  const byName = basename(started) === 'isogym' && folders.includes(dirname(started));
  return byName ? 'isogym' : `node ${quoted(fromHere(started))}`;
}

/** What reports a failure cannot fail itself, where the working folder has been removed. */
function fromHere(path: string): string {
  try {
    return shownPath(path);
  } catch {
    return path;
  }
}

const COMMAND = new RegExp(`(?<![\\w./-])isogym (?=(?:${SUBCOMMANDS.join('|')})\\b|--help)`, 'g');

/** A text of isogym's own, where commands stand as `isogym train …`, with each as it is typed here. */
export function asTyped(text: string, prefix: string = invocation()): string {
  return text.replace(COMMAND, () => `${prefix} `);
}
