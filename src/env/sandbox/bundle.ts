/** @module Bundling: one module and what it imports become one text for an isolate. */
import { basename, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type BuildFailure, build, type Message } from 'esbuild';
import { IsogymError } from '../../records/errors.ts';
import { resolveModule } from './resolve-module.ts';

/**
 * An expression, whose value is a function that runs the module's own code and gives its default export: `guarded` makes a
 * script of it, and calls it behind the guard's door. The same sources give the same text, wherever they lie. Its parentheses
 * make V8 compile it with the script, see `guard.ts`.
 * @throws MODULE_NOT_FOUND | BUNDLE_FAILED with file, line and column of each error
 */
export async function bundle(module: URL): Promise<string> {
  const file = fileURLToPath(resolveModule(module));
  try {
    const result = await build({
      // Assigned, not exported: esbuild would make an object with getters of what is exported, in every fresh context.
      stdin: {
        contents: `import * as module from ${JSON.stringify(`./${basename(file)}`)};exported=module.default`,
        resolveDir: dirname(file),
      },
      absWorkingDir: dirname(file),
      bundle: true,
      write: false,
      format: 'iife',
      platform: 'neutral',
      mainFields: ['module', 'main'],
      target: 'es2024',
      // No promise may exist inside, see `guard.ts`: these become calls of `Promise`, which is not there.
      supported: { 'async-await': false, 'async-generator': false, 'for-await': false, 'dynamic-import': false },
      // Paths of the machine would otherwise stand in comments.
      minifyWhitespace: true,
      legalComments: 'none',
      tsconfigRaw: {},
      banner: { js: '(function(){"use strict";let exported;' },
      footer: { js: 'return exported})' },
      logLevel: 'silent',
    });
    return result.outputFiles[0]?.text ?? '';
  } catch (error) {
    const errors = (error as Partial<BuildFailure>).errors;
    if (errors === undefined) throw error;
    const imports = errors.some(({ text }) => text.startsWith('Could not resolve'));
    throw new IsogymError('BUNDLE_FAILED', `${file} cannot be bundled:\n${errors.map(describe).join('\n')}`, {
      cause: error,
      exitCode: 2,
      hint: imports
        ? 'Code inside an isolate may import only modules that need nothing of Node: no node:fs, no native addons.'
        : 'Mend it there; nothing of it has run.',
    });
  }
}

function describe({ location, text }: Message): string {
  return location === null ? text : `${location.file}:${location.line}:${location.column + 1}: ${text}`;
}
